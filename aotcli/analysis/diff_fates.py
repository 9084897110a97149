"""Ops that both graphs have and that the two plans put elsewhere: saved or recomputed, forward or backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aotcli.analysis.diff_saved import folded_modules
from aotcli.analysis.diff_side import PlannedRegion, is_free
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import op_label
from aotcli.ir.difference import Cause, Fate, FateChange, NodeSide
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import tensor_leaves

_Judge = Callable[[int, int, Fate, Fate], Cause]


@dataclass(frozen=True, slots=True)
class _Moved:
    left: int
    right: int
    fates: tuple[Fate, Fate]
    cause: Cause


def fate_changes(
    left: PlannedRegion, right: PlannedRegion, pairing: Pairing, judge: _Judge, region: int
) -> list[FateChange]:
    """Rows of ops, folded by repeated layer. `judge` says why a pair, by positions and fates, differs."""
    groups: dict[tuple[object, ...], list[_Moved]] = {}
    for there, here in enumerate(pairing.right_of):
        if here < 0:
            continue
        node, other = left.graph.nodes[there], right.graph.nodes[here]
        fates = left.fates[there], right.fates[here]
        if fates[0] is fates[1] or node.kind is not NodeKind.OP or other.kind is not NodeKind.OP:
            continue
        if is_free(node) or is_free(other):
            continue
        moved = _Moved(there, here, fates, judge(there, here, *fates))
        key = (owner_of(node), owner_of(other), node.target, other.target, fates, moved.cause)
        groups.setdefault(key, []).append(moved)
    return [_row(left.graph, right.graph, group, region) for group in groups.values()]


def owner_of(node: Node) -> str | None:
    """Whose node it is, whatever the layer: modules of one class count as one."""
    return node.module_type or (None if node.module is None else layer_pattern(node.module))


def _row(left: JointGraph, right: JointGraph, group: list[_Moved], region: int) -> FateChange:
    first = group[0]
    mine, other = sorted(each.left for each in group), sorted(each.right for each in group)
    return FateChange(
        count=len(group),
        left_fate=first.fates[0],
        right_fate=first.fates[1],
        left=node_side(left, mine, op_label(left.nodes[mine[0]].target)),
        right=node_side(right, other, op_label(right.nodes[other[0]].target)),
        cause=first.cause,
        at=(mine[0], other[0]),
        region=region,
    )


def node_side(graph: JointGraph, positions: Sequence[int], what: str, *, everywhere: bool = False) -> NodeSide:
    """The side of a row that has the nodes at `positions`, which are in order. `everywhere` leaves the module out."""
    nodes = [graph.nodes[position] for position in positions]
    return NodeSide(
        module="" if everywhere else folded_modules([node.module for node in nodes]),
        what=what,
        source=next((node.source for node in nodes if node.source), None),
        names=tuple(node.name for node in nodes),
        nbytes=sum(leaf.nbytes for node in nodes for leaf in tensor_leaves(node.value)),
    )
