"""What a reader calls some ops that a picture shows as one: by the one that tells most, or by what they make up."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.op_names import op_label
from aotcli.analysis.scene_step import Unit

# Ops that decompositions leave: what is needed to tell the whole by, and its name.
_IDIOMS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"amax", "exp", "log", "gather"}), "cross entropy"),
    (frozenset({"amax", "exp", "sum", "log"}), "log softmax"),
    (frozenset({"amax", "exp", "sum", "div"}), "softmax"),
    (frozenset({"erf"}), "gelu"),
    (frozenset({"var mean", "rsqrt"}), "norm"),
    (frozenset({"pow", "mean", "rsqrt"}), "rms norm"),
    (frozenset({"sigmoid", "mul"}), "silu"),
    (frozenset({"random", "gt"}), "dropout"),
)
_PLAIN = frozenset(
    [
        *("add", "mul", "sub", "div", "neg", "cast", "where", "reciprocal", "clone", "copy", "alias", "expand"),
        *("full", "full like", "fill", "scalar tensor", "empty", "zeros", "ones", "iota", "squeeze", "unsqueeze"),
        *("ge", "gt", "le", "lt", "eq", "ne", "logical and", "logical or", "logical not"),
        *("bitwise and", "bitwise or", "bitwise not"),
    ]
)
_MOST_NAMES = 2


def telling_label(units: Sequence[Unit]) -> str:
    """What some ops make up (``gelu``), or the only op if it tells something; "" where nothing does."""
    names = frozenset(op_label(unit.node.target) for unit in units)
    if len(names) == 1:
        return next(iter(names - _PLAIN), "")
    return next((name for needed, name in _IDIOMS if needed <= names), "")


def label_units(units: Sequence[Unit], counterpart: str = "") -> str:
    """``addmm``, ``gelu``, ``exp, log +3``. `units` are of one side and not empty; `counterpart` is what the forward
    ops of the same line are called."""
    names = list(dict.fromkeys(op_label(unit.node.target) for unit in units))
    if len(names) == 1:
        return names[0]
    known = telling_label(units) or counterpart
    if known:
        return known
    telling = [name for name in names if name not in _PLAIN] or names
    shown = telling[:_MOST_NAMES]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" +{rest}" if rest else "")
