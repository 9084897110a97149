"""FLOPs and shares as people write them: ``2.5 TFLOP``, ``1e9``; ``5 %``."""

from __future__ import annotations

import re
from fractions import Fraction

from aotcli.errors import InputError

_FLOPS = re.compile(r"\s*(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kMGTPE]?)(?:FLOPs?)?\s*")
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def parse_flops(text: str) -> int:
    """Floating-point operations. Raises InputError where `text` is no such amount."""
    found = _FLOPS.fullmatch(text)
    if found is None:
        raise InputError(
            f"{text!r} is no number of FLOPs",
            why="it is a number and a unit: FLOP, kFLOP, MFLOP, GFLOP, TFLOP, PFLOP",
            fix="write 2.5 GFLOP, for instance",
        )
    return int(Fraction(found[1]) * _PREFIXES[found[2]])


def parse_share(text: str) -> Fraction | None:
    """The share that a percentage is (``5 %`` is 1/20); None where `text` is none."""
    found = _PERCENT.fullmatch(text)
    return None if found is None else Fraction(found[1]) / 100
