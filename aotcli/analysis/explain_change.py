"""What becomes of a plan when another takes its place: allocations that are treated otherwise, and the totals."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.explain_region import PlannedRegion
from aotcli.analysis.layers import layer_pattern, module_names
from aotcli.analysis.op_names import node_label
from aotcli.analysis.summary import summarize_recomputed
from aotcli.analysis.wishes import Made
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Change, ChangeRow, PlanTotals
from aotcli.ir.tensor import TensorSpec

_Key = tuple[Fate, Fate, str | None, str, object, str]


def change_between(before: Sequence[PlannedRegion], after: Sequence[PlannedRegion]) -> Change:
    """The change from one plan of a step to another; the regions are the same graphs in the same order."""
    groups: dict[_Key, list[tuple[PlannedRegion, Made]]] = {}
    for old, new in zip(before, after, strict=True):
        if old.partition is new.partition:
            continue
        for made in old.made:
            fates = old.fate(made), new.fate(made)
            if fates[0] is not fates[1]:
                groups.setdefault(_key(old, made, fates), []).append((old, made))
    rows = sorted((_row(key, group) for key, group in groups.items()), key=lambda row: (not row.of_saved, -row.nbytes))
    notes = dict.fromkeys(note for new in after for note in new.partition.notes)
    known = {note for old in before for note in old.partition.notes}
    return Change(totals(before), totals(after), tuple(rows), tuple(note for note in notes if note not in known))


def totals(regions: Sequence[PlannedRegion]) -> PlanTotals:
    """A plan of a step in numbers: sums over its regions, the largest peak."""
    partitions = [region.partition for region in regions]
    cuts = [each.cut_value for each in partitions if each.cut_value is not None]
    return PlanTotals(
        saved_bytes=sum(each.saved_bytes for each in partitions),
        recompute_flops=sum(each.recompute_flops for each in partitions),
        recomputed_ops=sum(summarize_recomputed(each.graph, each.partition.recomputed).ops for each in regions),
        peak_bytes=max((each.peak_bytes for each in partitions), default=0),
        cut_value=sum(cuts) if len(cuts) == len(partitions) else None,
    )


def _key(region: PlannedRegion, made: Made, fates: tuple[Fate, Fate]) -> _Key:
    node = region.graph.nodes[made.maker]
    assert isinstance(node.value, TensorSpec)  # memory is a tensor's
    module = None if node.module is None else layer_pattern(node.module)
    return (*fates, module, node_label(region.graph, node), node.value.shape, node.value.dtype)


def _row(key: _Key, group: list[tuple[PlannedRegion, Made]]) -> ChangeRow:
    nodes = [region.graph.nodes[made.maker] for region, made in group]
    value = nodes[0].value
    assert isinstance(value, TensorSpec)
    return ChangeRow(
        before=key[0],
        after=key[1],
        count=len(group),
        nbytes=sum(made.nbytes for _, made in group),
        module=module_names([node.module for node in nodes]),
        what=key[3],
        shape=value.shape,
        dtype=value.dtype,
        names=tuple(node.name for node in nodes),
    )
