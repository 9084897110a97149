"""The sentences of a difference: the verdict, its causes, what the ops did, how surely nodes were paired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from aotcli.analysis.layers import UNKNOWN_MODULE
from aotcli.ir.difference import Aspect, Cause, Difference, Fate, FateChange, Rewrite, RewriteSide, ValueChange
from aotcli.ir.tensor import Dim
from aotcli.render.units import (
    bytes_text,
    change_text,
    count_text,
    dtype_text,
    magnitude_text,
    parameters_text,
    plural,
    shape_text,
)

_MOST_LABELS = 6
_FATES = {
    Fate.SAVED: "saved",
    Fate.KEPT: "kept anyway",
    Fate.RECOMPUTED: "recomputed",
    Fate.FORWARD: "forward",
    Fate.BACKWARD: "backward",
    Fate.UNUSED: "unused",
    Fate.ABSENT: "absent",
}


def signed_bytes(nbytes: int) -> str:
    """``+4.51 GiB``, ``−403.1 MiB``, ``0 B``."""
    if not nbytes:
        return "0 B"
    return f"{'+' if nbytes > 0 else '−'}{bytes_text(abs(nbytes))}"


def bytes_pair(left: int, right: int) -> str:
    """``6.09 → 10.60 GiB``; one size where both read alike."""
    texts = bytes_text(left), bytes_text(right)
    if texts[0] == texts[1]:
        return texts[0]
    units = [text.rpartition(" ")[2] for text in texts]
    first = texts[0].rpartition(" ")[0] if units[0] == units[1] else texts[0]
    return f"{first} → {texts[1]}"


def _pair_text(left: int, right: int) -> str:
    return count_text(left) if left == right else f"{count_text(left)} → {count_text(right)}"


def verdict_text(difference: Difference) -> str:
    """Bytes and tensors on both sides, and the change."""
    left, right = difference.left.totals, difference.right.totals
    if left.saved_bytes != right.saved_bytes:
        delta = signed_bytes(difference.saved_delta_bytes)
        change = change_text(right.saved_bytes, left.saved_bytes)
        noun = "tensor" if right.saved_tensors == 1 else "tensors"
        tensors = f"{_pair_text(left.saved_tensors, right.saved_tensors)} {noun}"
        return f"{bytes_pair(left.saved_bytes, right.saved_bytes)}   {delta} ({change})   {tensors}"
    if difference.same_saved and not left.saved_tensors:
        return "nothing on both sides; what differs lies outside"
    if difference.same_saved:
        tensors = plural(left.saved_tensors, "tensor")
        return f"equal: {bytes_text(left.saved_bytes)} in the same {tensors}; what differs lies outside"
    tensors = f"{_pair_text(left.saved_tensors, right.saved_tensors)} tensors"
    return f"equal: {bytes_text(left.saved_bytes)}, in {tensors} that are not all the same"


def same_text(difference: Difference) -> str:
    """What is the same where nothing differs."""
    totals = difference.left.totals
    saved = f"{bytes_text(totals.saved_bytes)} saved in the same {plural(totals.saved_tensors, 'tensor')}"
    return saved if difference.unknown else f"the same graph, {saved}"


def cause_text(difference: Difference) -> str:
    """How much of the change is the graph's, and how much the decision's; empty where nothing is saved otherwise."""
    if difference.same_saved or difference.unknown:
        return ""
    strategies = difference.left.strategy, difference.right.strategy
    if difference.same_graph:
        if strategies[0] == strategies[1]:
            who = "PyTorch's partitioner" if strategies[0].startswith("torch") else strategies[0]
            return f"the graph is the same, {who} decided differently"
        return f"the graph is the same, {strategies[0]} and {strategies[1]} decide differently"
    if strategies[0] == strategies[1] == difference.yardstick:
        return f"the graph changed; {strategies[0]} planned both sides"
    if not difference.yardstick:
        return "graph and decision cannot be told apart: mincut cannot plan both graphs"
    if all(row.cause is Cause.GRAPH for row in difference.contributors):
        return f"the graph changed; {difference.yardstick} on both sides shows the same change"
    graph, decision = signed_bytes(difference.graph_bytes), signed_bytes(difference.decision_bytes)
    if difference.graph_bytes == 0:
        return f"decided differently; {difference.yardstick} saves as much of both graphs"
    return f"{graph}: the graph changed ({difference.yardstick} on both); {decision}: decided differently"


def outside_text(difference: Difference) -> list[str]:
    """Totals beside the saved bytes that differ: peak, recompute, FLOPs, ops, parameters."""
    left, right = difference.left.totals, difference.right.totals
    texts: list[str] = []
    if left.peak_bytes is not None and right.peak_bytes is not None and left.peak_bytes != right.peak_bytes:
        change = change_text(right.peak_bytes, left.peak_bytes)
        texts.append(f"peak ≥ {bytes_pair(left.peak_bytes, right.peak_bytes)} ({change})")
    for what, mine, other, text in (
        ("recomputed ops", left.recomputed_ops, right.recomputed_ops, count_text),
        ("recompute", left.recompute_flops, right.recompute_flops, _flops),
        ("forward ops", left.forward_ops, right.forward_ops, count_text),
        ("backward ops", left.backward_ops, right.backward_ops, count_text),
        ("forward", left.forward_flops, right.forward_flops, _flops),
        ("backward", left.backward_flops, right.backward_flops, _flops),
        ("parameters", left.parameters, right.parameters, _parameters),
    ):
        if mine is not None and other is not None and mine != other:
            texts.append(f"{what} {_change(mine, other, text)}")
    return texts


def _change(left: int, right: int, text: Callable[[int], str]) -> str:
    """``2.33 → 2.19 TFLOP``; in full where the two read alike."""
    texts = text(left), text(right)
    if texts[0] == texts[1]:
        return f"{count_text(left)} → {count_text(right)}"
    units = [each.partition(" ")[2] for each in texts]
    first = texts[0].partition(" ")[0] if units[0] == units[1] else texts[0]
    return f"{first} → {texts[1]}"


def _parameters(count: int) -> str:
    return parameters_text(count).replace(" ", "")  # in one piece, where lines are broken


def _flops(flops: int) -> str:
    return magnitude_text(flops, "FLOP")


# What became of ops.


def fate_text(row: FateChange) -> str:
    """``12 × h.* gelu: saved → recomputed``."""
    where = "" if row.right.module == UNKNOWN_MODULE else f"{row.right.module} "
    return f"{_times(row.count)}{where}{row.right.what}: {_FATES[row.left_fate]} → {_FATES[row.right_fate]}"


def fate_texts(rows: Iterable[FateChange]) -> list[str]:
    """One line for each kind of change: ``saved → recomputed  137 ops: 48 mul, 25 add, 24 addmm``."""
    kinds: dict[tuple[Fate, Fate], Counter[str]] = {}
    for row in rows:
        kinds.setdefault((row.left_fate, row.right_fate), Counter())[row.right.what] += row.count
    texts: list[str] = []
    for (left, right), counts in sorted(kinds.items(), key=lambda kind: (-kind[1].total(), kind[0])):
        labels = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        texts.append(f"{_FATES[left]} → {_FATES[right]}, {plural(counts.total(), 'op')}: {_labels_text(labels)}")
    return texts


def _times(count: int) -> str:
    return f"{count_text(count)} × " if count > 1 else ""


def rewrite_text(row: Rewrite) -> str:
    """``12 × h.*: attention became bmm, where, softmax, bmm``."""
    head = _times(row.count)
    if row.whole:
        side, verb = (row.left, "removed") if row.right.empty else (row.right, "added")
        nodes = plural(len(side.names) // row.count, "node")
        return f"{head}{side.module} {verb}, {nodes}{' each' if head else ''}"
    sides = [side.module for side in (row.left, row.right) if not side.empty and side.module != UNKNOWN_MODULE]
    where = f"{head}{' → '.join(dict.fromkeys(sides))}: " if sides else head
    if row.left.forward or row.right.forward:
        return where + _became(row.left.forward, row.right.forward)
    return f"{where}{_became(row.left.backward, row.right.backward)} in the backward"


Labels = Sequence[tuple[str, int]]


def _became(left: Labels, right: Labels) -> str:
    if not left:
        return f"added {_labels_text(right)}"
    if not right:
        return f"removed {_labels_text(left)}"
    return f"{_labels_text(left)} became {_labels_text(right)}"


def _labels_text(labels: Labels) -> str:
    shown = [f"{count_text(count)} {label}" if count > 1 else label for label, count in labels[:_MOST_LABELS]]
    rest = sum(count for _, count in labels[_MOST_LABELS:])
    return ", ".join([*shown, *([f"{count_text(rest)} more"] if rest else [])])


def is_free_rewrite(row: Rewrite) -> bool:
    """Whether only views changed, which cost nothing."""
    return all(_only_views(side) for side in (row.left, row.right))


def _only_views(side: RewriteSide) -> bool:
    return side.empty or side.free


def values_by_interest(rows: Sequence[ValueChange]) -> list[ValueChange]:
    """Rows in their order, but changes of strides, which follow from others, at the end."""
    return sorted(rows, key=lambda row: row.aspect is Aspect.LAYOUT)


def value_text(row: ValueChange) -> str:
    """``dtype f32 → bf16 in 1,148 values``; where they are of one kind, which."""
    module = "" if row.right.module == UNKNOWN_MODULE else f"{row.right.module} "
    where = f"{_times(row.count)}{module}{row.right.what}" if row.right.what else ""
    if row.aspect is Aspect.WIRING:
        return f"{where or plural(row.count, 'op')}: reads other values"
    if row.aspect is Aspect.SHAPE and row.left_value == row.right_value:
        return f"{where or plural(row.count, 'value')}: traced at other sizes"
    left, right = (_value_text(row.aspect, value) for value in (row.left_value, row.right_value))
    change = f"{row.aspect} {left} → {right}"
    return f"{where}: {change}" if where else f"{change} in {plural(row.count, 'value')}"


def _value_text(aspect: Aspect, value: tuple[Dim, ...]) -> str:
    if aspect is Aspect.DTYPE:
        return "/".join(dtype_text(str(each)) for each in value)
    if aspect is Aspect.SHAPE:
        return shape_text(value)
    return ", ".join(str(each) for each in value) or "none"


# How sure it is, and under which conditions.


def confidence_text(difference: Difference) -> str:
    """How surely nodes were paired, and how many were not."""
    found = difference.confidence
    if difference.same_graph:
        return f"all {plural(found.pairs, 'node')}, by fingerprint"
    kinds = (
        ("exactly", found.exact),
        ("by wiring", found.wired),
        ("by neighbourhood", found.near),
        ("by place", found.aligned),
        ("with another op", found.changed),
    )
    shares = ", ".join(f"{100.0 * count / found.pairs:.1f} % {how}" for how, count in kinds if count)
    left, right = (
        f"{count_text(n)} of {count_text(n + found.pairs)}" for n in (found.left_unpaired, found.right_unpaired)
    )
    alone = f"without a partner {left} nodes in A, {right} in B"
    return f"{plural(found.pairs, 'pair')}{': ' if shares else ''}{shares}; {alone}"


def environment_text(difference: Difference) -> str:
    """What was traced differently: ``torch 2.12.0 → 2.13.0; level aten → inductor``."""
    return "; ".join(f"{each.what} {each.left} → {each.right}" for each in difference.environment)
