"""Sizes as people write them: ``2GiB``, ``1.5 MiB``, ``200 kB``, ``512 B``."""

from __future__ import annotations

import re
from fractions import Fraction

from aotcli.errors import InputError

_UNITS = {
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_size(text: str) -> int:
    """Bytes of a size with its unit, rounded to a whole byte. Raises InputError where it is none."""
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        bare = bool(re.fullmatch(r"\s*\d+(\.\d+)?\s*", text))
        raise InputError(
            f"{text!r} is no size",
            why="a size needs a unit"
            if bare
            else "a size is a number and a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB",
            fix=f"write {text.strip()}MiB, if that is meant" if bare else "write 24MiB, for instance",
        )
    return round(Fraction(found[1]) * unit)


def size_text(nbytes: int) -> str:
    """The shortest text that `parse_size` reads back as exactly `nbytes`."""
    for name, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        whole, rest = divmod(nbytes, size)
        if whole and rest in (0, size // 2):
            return f"{whole}{'.5' if rest else ''}{name}"
    return f"{nbytes}B"


def enough_text(nbytes: int) -> str:
    """A size of at least `nbytes`, as people write it: rounded up to a tenth of a MiB where that is little."""
    if nbytes < 16 << 20:
        return size_text(nbytes)
    tenths = -(-nbytes * 10 // (1 << 20))
    return f"{tenths // 10}.{tenths % 10}MiB" if tenths % 10 else f"{tenths // 10}MiB"
