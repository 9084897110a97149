"""Names of nodes and paths of modules as patterns with the numbers taken out, so that repeated layers look the same."""

from __future__ import annotations

import re

_NUMBERED_NAME = re.compile(r"(.+)_([1-9]\d{0,8})")
_NUMBERED_PART = re.compile(r"(?<![^.])(?:0|[1-9]\d{0,8})(?![^.])", re.ASCII)
_HOLE = "#"
_LITERAL = "="


def split_name(name: str) -> tuple[str, int]:
    """``add_12`` as (``add``, 12), ``add`` as (``add``, 0): the number that fx appends to make names unique."""
    match = _NUMBERED_NAME.fullmatch(name)
    return (match[1], int(match[2])) if match and match[2].isascii() else (name, 0)


def join_name(stem: str, number: int) -> str:
    """What `split_name` took apart."""
    return f"{stem}_{number}" if number else stem


def default_stem(target: str) -> str:
    """The stem that fx gives an op: ``mm`` for ``aten.mm.default``, ``getitem`` for ``operator.getitem``."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 else target


def split_path(path: str) -> tuple[str, tuple[int, ...]]:
    """``h.3.ln1`` as (``h.#.ln1``, (3,)). A path that holds the hole's own sign is kept as it is, behind ``=``."""
    if _HOLE in path or path.startswith(_LITERAL):
        return _LITERAL + path, ()
    if path.isdigit() or "." in path:
        numbers = tuple(int(part) for part in _NUMBERED_PART.findall(path))
        return (_NUMBERED_PART.sub(_HOLE, path), numbers) if numbers else (path, ())
    return path, ()


def count_holes(pattern: str) -> int:
    """How many numbers `join_path` needs."""
    return 0 if pattern.startswith(_LITERAL) else pattern.count(_HOLE)


def join_path(pattern: str, numbers: tuple[int, ...]) -> str:
    """What `split_path` took apart."""
    if pattern.startswith(_LITERAL):
        return pattern[1:]
    parts = pattern.split(_HOLE)
    pieces = [parts[0]]
    for number, part in zip(numbers, parts[1:], strict=True):
        pieces += (str(number), part)
    return "".join(pieces)
