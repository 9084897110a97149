"""Arguments of nodes as JSON, and back.

`None`, numbers and tuples are themselves (a tuple is an array). A string ``%`` is a reference, which the row fills in;
``'text`` is the string ``text``. An object of one key is a `Const`, its kind the key; ``slice``, ``dict`` and
``float`` (a number that JSON cannot write) are the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from aotcli.ir.document import Json, Place
from aotcli.ir.joint import Arg, Const, Mapping, Ref, Slice

REFERENCE = "%"
_QUOTE = "'"
_RESERVED = ("slice", "dict", "float", "const")
_MOST_NESTED = 32
_LARGEST_INT = 1 << 64


def arg_to_json(arg: Arg) -> Json:
    """An argument with its references left open."""
    if arg is None or isinstance(arg, (bool, int)):
        return arg
    if isinstance(arg, str):
        return _QUOTE + arg
    if isinstance(arg, Ref):
        return REFERENCE
    if isinstance(arg, float):
        return arg if math.isfinite(arg) else {"float": repr(arg)}
    if isinstance(arg, tuple):
        return [arg_to_json(part) for part in arg]
    if isinstance(arg, Slice):
        return {"slice": [arg_to_json(arg.start), arg_to_json(arg.stop), arg_to_json(arg.step)]}
    if isinstance(arg, Mapping):
        return {"dict": [[key, arg_to_json(part)] for key, part in arg.items]}
    return {"const": [arg.kind, arg.text]} if arg.kind in _RESERVED else {arg.kind: arg.text}


@dataclass(frozen=True, slots=True)
class Hole:
    """An argument that holds references: `kind` is ref, tuple, slice or dict, `parts` its parts, `keys` a dict's."""

    kind: str
    parts: tuple[Pattern, ...] = ()
    keys: tuple[str, ...] = ()


Pattern = Arg | Hole
"""An argument as a template holds it: whole where it has no references, else a `Hole`."""

_REF = Hole("ref")


def pattern_from_json(data: Json, place: Place, depth: int = 0) -> Pattern:
    """What `arg_to_json` wrote. Raises RecordError where it did not write this."""
    if depth > _MOST_NESTED:
        raise place.error(f"arguments nested deeper than {_MOST_NESTED}")
    if data is None or isinstance(data, (bool, float)):
        return data
    if isinstance(data, int):
        return place.integer(data, -_LARGEST_INT, _LARGEST_INT)
    if isinstance(data, str):
        if data == REFERENCE:
            return _REF
        if not data.startswith(_QUOTE):
            raise place.error(f"{data!r} is neither a reference nor a quoted string")
        return data[1:]
    if isinstance(data, list):
        return _tuple(tuple(pattern_from_json(part, place, depth + 1) for part in data))
    if len(data) != 1:
        raise place.error("an argument that is an object has one key")
    ((kind, content),) = data.items()
    return _object(kind, content, place, depth)


def _object(kind: str, content: Json, place: Place, depth: int) -> Pattern:
    if kind == "float":
        return _nonfinite(place.text(content), place)
    if kind == "slice":
        parts = tuple(pattern_from_json(part, place, depth + 1) for part in place.array(content, 3))
        return Hole("slice", parts) if _has_hole(parts) else _slice(parts)
    if kind == "dict":
        pairs = [place.array(pair, 2) for pair in place.array(content)]
        keys = tuple(place.text(key) for key, _ in pairs)
        parts = tuple(pattern_from_json(part, place, depth + 1) for _, part in pairs)
        return Hole("dict", parts, keys) if _has_hole(parts) else _mapping(keys, parts)
    if kind == "const":
        own_kind, text = place.array(content, 2)
        return Const(place.text(own_kind), place.text(text))
    return Const(kind, place.text(content))


def _nonfinite(text: str, place: Place) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise place.error(f"{text!r} is no float")
    return float(text)


def _has_hole(parts: tuple[Pattern, ...]) -> bool:
    return any(isinstance(part, Hole) for part in parts)


def _tuple(parts: tuple[Pattern, ...]) -> Pattern:
    return Hole("tuple", parts) if _has_hole(parts) else _whole(parts)


def _whole(parts: tuple[Pattern, ...]) -> tuple[Arg, ...]:
    return tuple(part for part in parts if not isinstance(part, Hole))


def _slice(parts: tuple[Pattern, ...]) -> Slice:
    start, stop, step = _whole(parts)
    return Slice(start, stop, step)


def _mapping(keys: tuple[str, ...], parts: tuple[Pattern, ...]) -> Mapping:
    return Mapping(tuple(zip(keys, _whole(parts), strict=True)))


def count_refs(pattern: Pattern) -> int:
    """How many references a pattern leaves open."""
    if not isinstance(pattern, Hole):
        return 0
    return 1 if pattern.kind == "ref" else sum(count_refs(part) for part in pattern.parts)


def fill(pattern: Pattern, refs: Iterator[Ref]) -> Arg:
    """The argument, with references taken from `refs` in order."""
    if not isinstance(pattern, Hole):
        return pattern
    if pattern.kind == "ref":
        return next(refs)
    parts = tuple([fill(part, refs) for part in pattern.parts])
    if pattern.kind == "tuple":
        return parts
    if pattern.kind == "slice":
        return Slice(*parts)
    return Mapping(tuple(zip(pattern.keys, parts, strict=True)))
