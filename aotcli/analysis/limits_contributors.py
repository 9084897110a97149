"""What makes up a breach: rows with module and line, folded by repeated layer, largest first.

    saved_contributors(difference)         -> what is saved more, from the difference of two plans
    saved_rows(now)                        -> what is saved
    peak_contributors(before, now)         -> what is live at the peak now, against what was live at the peak then
    recompute_contributors(before, now)    -> FLOPs that are computed a second time
    op_contributors(found)                 -> where a forbidden op stands

`before` is None where there is no baseline: rows then make up the figure itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.layers import fold_saved, layer_pattern, module_label
from aotcli.analysis.lifetimes import trace_lifetimes
from aotcli.analysis.op_names import node_label, op_label
from aotcli.ir.check import Contributor
from aotcli.ir.difference import Difference, Fate
from aotcli.ir.joint import JointGraph, Node
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import Dim, tensor_leaves


@dataclass(frozen=True)
class PlannedStep:
    """The regions of a step and what a plan does with each."""

    regions: tuple[JointGraph, ...]
    partitions: tuple[Partition, ...]


_Key = tuple[str, str, tuple[Dim, ...], str]


@dataclass(slots=True)
class _Row:
    amount: int = 0
    count: int = 0
    sources: list[str] = field(default_factory=list[str])


_Rows = dict[_Key, _Row]


def saved_contributors(difference: Difference) -> tuple[Contributor, ...]:
    """The saved tensors whose bytes differ."""
    rows: list[Contributor] = []
    for change in difference.contributors:
        if change.delta_bytes == 0:
            continue
        side = change.shown
        rows.append(
            Contributor(
                amount=change.delta_bytes,
                count=change.count,
                module=side.module,
                what=side.what,
                shape=side.shape,
                dtype=side.dtype,
                source=side.source if change.right is None else change.right.source,
                gone=change.right_fate is Fate.ABSENT,
            )
        )
    return tuple(sorted(rows, key=lambda row: -abs(row.amount)))


def saved_rows(now: PlannedStep) -> tuple[Contributor, ...]:
    """All saved tensors."""
    rows = [
        Contributor(row.nbytes, row.count, row.module, row.what, row.shape, row.dtype, row.source)
        for graph, partition in zip(now.regions, now.partitions, strict=True)
        for row in fold_saved(graph, partition.saved)
    ]
    return tuple(sorted(rows, key=lambda row: -row.amount))


def peak_contributors(before: PlannedStep | None, now: PlannedStep) -> tuple[Contributor, ...]:
    """What is live at the peak of the region that has the highest."""
    return _differences({} if before is None else _live_at_peak(before), _live_at_peak(now))


def _live_at_peak(step: PlannedStep) -> _Rows:
    rows: _Rows = {}
    pairs = zip(step.regions, step.partitions, strict=True)
    highest = max(pairs, key=lambda pair: pair[1].peak_bytes, default=None)
    if highest is None:
        return rows
    graph, partition = highest
    lifetimes = trace_lifetimes(graph, cut(graph, decision_of(partition)))
    for allocation in lifetimes.live_at(lifetimes.timeline.peak_at):
        node = graph[allocation.name]
        _add(rows, graph, node, f"{node_label(graph, node)}, {allocation.use}", allocation.nbytes)
    return rows


def recompute_contributors(before: PlannedStep | None, now: PlannedStep) -> tuple[Contributor, ...]:
    """The ops with FLOPs that run a second time."""
    return _differences({} if before is None else _recomputed(before), _recomputed(now))


def _recomputed(step: PlannedStep) -> _Rows:
    rows: _Rows = {}
    for graph, partition in zip(step.regions, step.partitions, strict=True):
        for name in partition.recomputed:
            if name in graph.index and graph[name].flops:
                node = graph[name]
                _add(rows, graph, node, node_label(graph, node), node.flops or 0)
    return rows


def op_contributors(found: Iterable[tuple[JointGraph, Node]]) -> tuple[Contributor, ...]:
    """Where the nodes stand, most of them first; amounts count nodes."""
    rows: _Rows = {}
    for graph, node in found:
        _add(rows, graph, node, op_label(node.target), 1)
    return _differences({}, rows)


def _add(rows: _Rows, graph: JointGraph, node: Node, what: str, amount: int) -> None:
    leaves = tensor_leaves(node.value)
    shape, dtype = (leaves[0].shape, leaves[0].dtype) if leaves else ((), "")
    module = module_label(None if node.module is None else layer_pattern(node.module))
    row = rows.setdefault((module, what, shape, dtype), _Row())
    row.amount += amount
    row.count += 1
    if node.source is not None:
        row.sources.append(node.source)


def _differences(before: _Rows, now: _Rows) -> tuple[Contributor, ...]:
    """Rows of `now` less those of `before`, by key; what is equal is left out."""
    partner = _partners(before, now)
    found: list[Contributor] = []
    for key, row in now.items():
        old = before.get(partner.get(key, key))
        found.append(_contributor(key, row, row.amount - (0 if old is None else old.amount)))
    matched = {partner.get(key, key) for key in now}
    found += [_contributor(key, row, -row.amount, gone=True) for key, row in before.items() if key not in matched]
    return tuple(sorted((row for row in found if row.amount), key=lambda row: -abs(row.amount)))


def _partners(before: _Rows, now: _Rows) -> dict[_Key, _Key]:
    """For rows that `before` has in another shape or dtype only, which: the one such row of that module and kind."""
    old: dict[tuple[str, str], list[_Key]] = {}
    new: dict[tuple[str, str], list[_Key]] = {}
    for rows, others, found in ((before, now, old), (now, before, new)):
        for key in rows:
            if key not in others:
                found.setdefault(key[:2], []).append(key)
    return {keys[0]: old[place][0] for place, keys in new.items() if len(keys) == 1 and len(old.get(place, ())) == 1}


def _contributor(key: _Key, row: _Row, amount: int, *, gone: bool = False) -> Contributor:
    module, what, shape, dtype = key
    source = row.sources[0] if row.sources else None
    return Contributor(amount, row.count, module, what, shape, dtype, source, gone)
