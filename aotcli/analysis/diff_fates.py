"""Ops that both graphs have and that the two plans put elsewhere: saved or recomputed, forward or backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aotcli.analysis.diff_saved import folded_modules
from aotcli.analysis.diff_side import PlannedRegion, is_free
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import op_label
from aotcli.ir.difference import Cause, Fate, FateChange
from aotcli.ir.joint import Node, NodeKind
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import tensor_leaves

_Judge = Callable[[int, int, Fate, Fate], Cause]


@dataclass(frozen=True, slots=True)
class _Moved:
    left: Node
    right: Node
    fates: tuple[Fate, Fate]
    cause: Cause

    @property
    def key(self) -> tuple[object, ...]:
        owners = [
            node.module_type or (None if node.module is None else layer_pattern(node.module))
            for node in (self.left, self.right)
        ]
        return (*owners, self.left.target, self.right.target, self.fates, self.cause)


def fate_changes(
    left: PlannedRegion, right: PlannedRegion, pairing: Pairing, judge: _Judge, region: int
) -> list[FateChange]:
    """Rows of ops, folded by repeated layer, those of most ops first. `judge` says why a pair differs."""
    groups: dict[tuple[object, ...], list[_Moved]] = {}
    nodes, others = left.graph.nodes, right.graph.nodes
    pairs = [(there, here) for there, here in enumerate(pairing.right_of) if here >= 0]
    for there, here in sorted(pairs, key=lambda pair: (min(pair), max(pair))):
        fates = left.fates[there], right.fates[here]
        node, other = nodes[there], others[here]
        if fates[0] is fates[1] or node.kind is not NodeKind.OP or other.kind is not NodeKind.OP:
            continue
        if is_free(node) or is_free(other):
            continue
        moved = _Moved(node, other, fates, judge(there, here, *fates))
        groups.setdefault(moved.key, []).append(moved)
    rows = [_row(group, region) for group in groups.values()]
    return sorted(rows, key=lambda row: -row.count)


def _row(group: list[_Moved], region: int) -> FateChange:
    first = group[0]
    return FateChange(
        count=len(group),
        left_module=folded_modules([each.left.module for each in group]),
        right_module=folded_modules([each.right.module for each in group]),
        left_what=op_label(first.left.target),
        right_what=op_label(first.right.target),
        left=first.fates[0],
        right=first.fates[1],
        left_nbytes=sum(_nbytes(each.left) for each in group),
        right_nbytes=sum(_nbytes(each.right) for each in group),
        left_source=first.left.source,
        right_source=first.right.source,
        names=tuple((each.left.name, each.right.name) for each in group),
        cause=first.cause,
        region=region,
    )


def _nbytes(node: Node) -> int:
    return sum(leaf.nbytes for leaf in tensor_leaves(node.value))
