"""What of a difference is shown, and the words for it: shared by text, Markdown and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.ir.difference import (
    Aspect,
    Difference,
    Fate,
    FateChange,
    Growth,
    Rewrite,
    RewriteSide,
    SavedChange,
    SideTotals,
    ValueChange,
)
from aotcli.ir.tensor import Dim
from aotcli.render.units import bytes_text, change_text, count_text, dtype_text, magnitude_text, plural, shape_text

ONLY = ("saved", "graph")
DEFAULT_LIMIT = 12
_MOST_LABELS = 6

_WAS = {
    Fate.ABSENT: "new",
    Fate.RECOMPUTED: "was recomputed",
    Fate.FORWARD: "was not kept",
    Fate.BACKWARD: "was in backward",
    Fate.KEPT: "was kept anyway",
    Fate.UNUSED: "was unused",
    Fate.SAVED: "shared storage",
}
_IS = {
    Fate.ABSENT: "gone",
    Fate.RECOMPUTED: "recomputed",
    Fate.FORWARD: "not kept",
    Fate.BACKWARD: "in backward",
    Fate.KEPT: "kept anyway",
    Fate.UNUSED: "unused",
    Fate.SAVED: "shares storage",
}
FATE_WORDS = {
    Fate.SAVED: "saved",
    Fate.KEPT: "kept anyway",
    Fate.RECOMPUTED: "recomputed",
    Fate.FORWARD: "forward only",
    Fate.BACKWARD: "backward only",
    Fate.UNUSED: "unused",
    Fate.ABSENT: "absent",
}


@dataclass(frozen=True, slots=True)
class DiffRows:
    """Which rows: `only` "saved" or "graph"; `every` no limit; `limit` rows in each list, None for the default."""

    only: str | None = None
    every: bool = False
    limit: int | None = None

    @property
    def saved(self) -> bool:
        """Whether what is saved is shown."""
        return self.only != "graph"

    @property
    def graph(self) -> bool:
        """Whether the change of graph is shown."""
        return self.only != "saved"

    def count(self, rows: int, default: int = DEFAULT_LIMIT) -> int:
        """How many of `rows` rows are shown; one row alone is not worth hiding."""
        limit = rows if self.every else default if self.limit is None else self.limit
        return rows if rows == limit + 1 and self.limit is None else min(rows, limit)

    def differs(self, difference: Difference) -> bool:
        """Whether there is a difference in what is shown."""
        saved = not difference.same_saved or bool(difference.fates)
        graph = not difference.same_graph or bool(difference.values) or bool(difference.rewrites)
        return (self.saved and saved) or (self.graph and graph)


# Saved tensors.


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A row of the table: one change, or several that are one because they differ alike everywhere."""

    rows: tuple[SavedChange, ...]
    module: str
    what: str
    shape: str
    dtype: str
    how: str
    source: str

    @property
    def delta_bytes(self) -> int:
        return sum(row.delta_bytes for row in self.rows)

    @property
    def count(self) -> int:
        return sum(row.count for row in self.rows)


def shown_changes(difference: Difference) -> list[ShownChange]:
    """The rows of saved tensors that differ. Rows that only changed their dtype, all in the same way, are one."""
    cast: dict[tuple[str, str], list[SavedChange]] = {}
    for row in difference.contributors:
        if _only_dtype(row):
            assert row.left is not None
            assert row.right is not None
            cast.setdefault((row.left.dtype, row.right.dtype), []).append(row)
    together = {id(row): rows for rows in cast.values() if len(rows) > 2 for row in rows}
    shown: list[ShownChange] = []
    for row in difference.contributors:
        group = together.get(id(row))
        if group is None:
            shown.append(_one(difference, row))
        elif group[0] is row:
            shown.append(_several(difference, group))
    return sorted(shown, key=lambda each: -abs(each.delta_bytes))


def _only_dtype(row: SavedChange) -> bool:
    left, right = row.left, row.right
    if left is None or right is None or left.fate is not Fate.SAVED or right.fate is not Fate.SAVED:
        return False
    return left.dtype != right.dtype and left.shape == right.shape


def _one(difference: Difference, row: SavedChange) -> ShownChange:
    side = row.shown
    more = f" +{side.sources - 1}" if side.sources > 1 else ""
    return ShownChange(
        rows=(row,),
        module=side.module,
        what=side.what,
        shape=shape_text(side.shape),
        dtype=side.dtype,
        how=how_text(difference, row),
        source=f"{side.source}{more}" if side.source else "",
    )


def _several(difference: Difference, rows: Sequence[SavedChange]) -> ShownChange:
    kinds = plural(len(rows), "kind")
    return ShownChange(
        tuple(rows), "", f"tensors of {kinds}", "", rows[0].shown.dtype, how_text(difference, rows[0]), ""
    )


def how_text(difference: Difference, row: SavedChange) -> str:
    """What became of the tensors of a row."""
    partial = row.region < len(difference.regions) and difference.regions[row.region].partial
    if row.growth is Growth.ADDED:
        text = "was not saved" if partial and row.left is None else _WAS[row.left_fate]
    elif row.growth is Growth.REMOVED:
        text = "not saved" if partial and row.right is None else _IS[row.right_fate]
    else:
        text = _altered_text(row)
    return f"{text} (tie)" if row.tie else text


def _altered_text(row: SavedChange) -> str:
    left, right = row.left, row.right
    assert left is not None
    assert right is not None
    if left.what != right.what:
        return f"was {left.what}"
    parts: list[str] = []
    if left.shape != right.shape:
        parts.append(f"was {shape_text(left.shape)}")
    if left.dtype != right.dtype:
        parts.append(f"was {dtype_text(left.dtype)}")
    return ", ".join(parts) or "other storage"


def tie_note(difference: Difference) -> str:
    """What a tie is, where there is one."""
    if not any(row.tie for row in difference.saved):
        return ""
    return "tie: the other side saves another tensor of the same size a few ops away; neither is better"


# Verdict.


def signed_bytes(nbytes: int) -> str:
    """``+4.51 GiB``, ``−403.1 MiB``, ``0 B``."""
    if not nbytes:
        return "0 B"
    return f"{'+' if nbytes > 0 else '−'}{bytes_text(abs(nbytes))}"


def bytes_pair(left: int, right: int) -> str:
    """``6.09 → 10.60 GiB``, or one size where both are equal."""
    if left == right:
        return bytes_text(left)
    texts = bytes_text(left), bytes_text(right)
    units = [text.rpartition(" ")[2] for text in texts]
    first = texts[0].rpartition(" ")[0] if units[0] == units[1] else texts[0]
    return f"{first} → {texts[1]}"


def verdict_text(difference: Difference) -> str:
    """Bytes and tensors on both sides, and the change."""
    left, right = difference.left.totals, difference.right.totals
    if left.saved_bytes == right.saved_bytes:
        same = "in the same" if difference.same_saved else "each, not all in the same tensors:"
        tensors = _pair_text(left.saved_tensors, right.saved_tensors)
        noun = "tensor" if left.saved_tensors == right.saved_tensors == 1 else "tensors"
        if difference.same_saved:
            return f"{bytes_text(left.saved_bytes)} on both sides, {same} {tensors} {noun}"
        return f"{bytes_text(left.saved_bytes)} {same} {tensors} {noun}"
    delta = signed_bytes(difference.saved_delta_bytes)
    change = change_text(right.saved_bytes, left.saved_bytes)
    tensors = f"{_pair_text(left.saved_tensors, right.saved_tensors)} tensors"
    return f"{bytes_pair(left.saved_bytes, right.saved_bytes)}   {delta} ({change})   {tensors}"


def _pair_text(left: int, right: int) -> str:
    return count_text(left) if left == right else f"{count_text(left)} → {count_text(right)}"


def cause_text(difference: Difference) -> str:
    """How much of the change is the graph's, and how much the decision's; empty where nothing is saved otherwise."""
    if difference.same_saved or difference.unknown:
        return ""
    strategies = difference.left.strategy, difference.right.strategy
    if difference.same_graph:
        return f"the graph is the same, {' and '.join(dict.fromkeys(strategies))} decided differently"
    if strategies[0] == strategies[1] == difference.yardstick:
        return f"all of it comes from the graph: {strategies[0]} planned both sides"
    if not difference.yardstick:
        return "graph and decision cannot be told apart: mincut cannot plan both graphs"
    graph, decision = signed_bytes(difference.graph_bytes), signed_bytes(difference.decision_bytes)
    yardstick = difference.yardstick
    return f"{graph} by the change of graph ({yardstick} on both), {decision} by what was decided differently"


def outside_text(difference: Difference) -> list[str]:
    """Totals beside the saved bytes that differ: ops, FLOPs, recompute, peak."""
    left, right = difference.left.totals, difference.right.totals
    pairs = [
        ("parameters", *_counts(left.parameters, right.parameters)),
        ("forward ops", *_counts(left.forward_ops, right.forward_ops)),
        ("backward ops", *_counts(left.backward_ops, right.backward_ops)),
        ("recomputed ops", *_counts(left.recomputed_ops, right.recomputed_ops)),
        ("forward", *_flops(left.forward_flops, right.forward_flops)),
        ("backward", *_flops(left.backward_flops, right.backward_flops)),
        ("recompute", *_flops(left.recompute_flops, right.recompute_flops)),
    ]
    texts = [f"{what} {mine} → {other}" for what, mine, other in pairs if mine != other]
    return [*texts, *_peak(left, right)]


def _counts(left: int | None, right: int | None) -> tuple[str, str]:
    return _known(left, right, count_text)


def _flops(left: int | None, right: int | None) -> tuple[str, str]:
    mine, other = _known(left, right, lambda flops: magnitude_text(flops, "FLOP"))
    if mine == other and left != right:  # equal as rounded
        return _known(left, right, lambda flops: f"{count_text(flops)} FLOP")
    return mine, other


def _known(left: int | None, right: int | None, text: object) -> tuple[str, str]:
    assert callable(text)
    if left is None or right is None:
        return "", ""
    return str(text(left)), str(text(right))


def _peak(left: SideTotals, right: SideTotals) -> list[str]:
    if left.peak_bytes is None or right.peak_bytes is None or left.peak_bytes == right.peak_bytes:
        return []
    change = change_text(right.peak_bytes, left.peak_bytes)
    return [f"peak ≥ {bytes_pair(left.peak_bytes, right.peak_bytes)} ({change})"]


# Flips, moves, and the graph.


def fate_text(row: FateChange) -> str:
    """``12 × h.* gelu: saved → recomputed``."""
    where = f"{row.right.module} " if row.right.module else ""
    words = f"{FATE_WORDS[row.left_fate]} → {FATE_WORDS[row.right_fate]}"
    return f"{_times(row.count)}{where}{row.right.what}: {words}"


def _times(count: int) -> str:
    return f"{count_text(count)} × " if count > 1 else ""


def rewrite_text(row: Rewrite) -> str:
    """``12 × h.*: attention became bmm, where, softmax, bmm``."""
    head = _times(row.count)
    if row.left.empty or row.right.empty:
        side, verb = (row.left, "removed") if row.right.empty else (row.right, "added")
        if row.whole:
            return (
                f"{head}{side.module} {verb}, {plural(len(side.names) // row.count, 'node')} each"
                if head
                else (f"{side.module} {verb} with its {plural(len(side.names), 'node')}")
            )
        return f"{head}{side.module}: {verb} {_labels_text(side)}"
    modules = row.right.module if row.left.module == row.right.module else f"{row.left.module} → {row.right.module}"
    return f"{head}{modules}: {_labels_text(row.left)} became {_labels_text(row.right)}"


def _labels_text(side: RewriteSide) -> str:
    """The ops of the forward; those of the backward where there are no others, and said so."""
    labels, where = (side.forward, "") if side.forward else (side.backward, " in the backward")
    shown = [f"{count} {label}" if count > 1 else label for label, count in labels[:_MOST_LABELS]]
    rest = sum(count for _, count in labels[_MOST_LABELS:])
    return ", ".join([*shown, *([f"{rest} more"] if rest else [])]) + where


def value_text(row: ValueChange) -> str:
    """``dtype f32 → bf16 in 1,148 values``; where they are of one kind, which."""
    where = row.right.what and f"{_times(row.count)}{row.right.module} {row.right.what}"
    if row.aspect is Aspect.WIRING:
        return f"{where or plural(row.count, 'op')}: reads other values"
    left, right = (_value_text(row.aspect, value) for value in (row.left_value, row.right_value))
    if row.aspect is Aspect.SHAPE and row.left_value == row.right_value:
        return f"{where or plural(row.count, 'value')}: traced at other sizes"
    change = f"{row.aspect} {left} → {right}"
    return f"{where}: {change}" if where else f"{change} in {plural(row.count, 'value')}"


def _value_text(aspect: Aspect, value: tuple[Dim, ...]) -> str:
    if aspect is Aspect.DTYPE:
        return "/".join(dtype_text(str(each)) for each in value)
    if aspect is Aspect.SHAPE:
        return shape_text(value)
    return ", ".join(str(each) for each in value) or "none"


def confidence_text(difference: Difference) -> str:
    """How surely nodes were paired, and how many were not."""
    found = difference.confidence
    left = found.pairs + found.left_unpaired
    right = found.pairs + found.right_unpaired
    if difference.same_graph:
        return f"all {count_text(left)} nodes, by fingerprint"
    kinds = (
        ("exactly", found.exact),
        ("by wiring", found.wired),
        ("by neighbourhood", found.near),
        ("by place", found.aligned),
        ("op changed", found.changed),
    )
    shares = ", ".join(f"{100.0 * count / found.pairs:.1f} % {how}" for how, count in kinds if count)
    nodes = f"{count_text(found.pairs)} of {_pair_text(left, right)} nodes"
    unpaired = f"{count_text(found.left_unpaired)} left and {count_text(found.right_unpaired)} right without a partner"
    return f"{nodes} ({shares}); {unpaired}" if found.pairs else f"0 of {_pair_text(left, right)} nodes"


def environment_text(difference: Difference) -> str:
    """What was traced differently: ``torch 2.12.0 → 2.13.0, level aten → inductor``."""
    return ", ".join(f"{each.what} {each.left} → {each.right}" for each in difference.environment)
