"""Which region of one trace is which of another, and which node which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.matching import match_graphs
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pairing import Match, Pairing

_ALIKE = 0.2  # regions that share less than this of their ops are not the same region


@dataclass(frozen=True, slots=True)
class RegionPair:
    """Positions of two regions in their traces, and the pairing of their nodes; -1 where a side has none.

    `partial` says that one side is a plan file: it knows the saved values, and no graph.
    """

    left: int
    right: int
    pairing: Pairing
    same_graph: bool = False
    partial: bool = False

    def mirrored(self) -> RegionPair:
        return RegionPair(self.right, self.left, self.pairing.mirrored(), self.same_graph, self.partial)


def pair_regions(left: Sequence[JointGraph], right: Sequence[JointGraph]) -> tuple[RegionPair, ...]:
    """Pairs regions by fingerprint first, then by the ops that they share; what is left has no partner.

    Pairs stand in the order of the left trace, regions of the right alone after those that come before them there.
    """
    partner = _partners(left, right)
    taken = set(partner.values())
    pairs = [_paired(left, right, i, partner[i]) if i in partner else _alone(left, i) for i in range(len(left))]
    pairs += [_alone(right, j).mirrored() for j in range(len(right)) if j not in taken]
    return tuple(sorted(pairs, key=lambda pair: _place(pair, left, right)))


def _place(pair: RegionPair, left: Sequence[JointGraph], right: Sequence[JointGraph]) -> tuple[int, int, list[str]]:
    """An order that does not depend on which side is the left one."""
    there = left[pair.left].fingerprint if pair.left >= 0 else ""
    here = right[pair.right].fingerprint if pair.right >= 0 else ""
    return max(pair.left, pair.right), min(pair.left, pair.right), sorted((there, here))


def _partners(left: Sequence[JointGraph], right: Sequence[JointGraph]) -> dict[int, int]:
    """Left to right positions. Among regions that are equally alike, those that stand at like places are paired."""
    ops = [[_op_counts(graph) for graph in side] for side in (left, right)]
    found: list[tuple[float, int, int, int, int, int]] = []
    for i, graph in enumerate(left):
        for j, other in enumerate(right):
            if graph.has_backward is not other.has_backward and min(len(left), len(right)) > 1:
                continue
            same = bool(graph.fingerprint) and graph.fingerprint == other.fingerprint
            alike = 2.0 if same else _likeness(ops[0][i], ops[1][j])
            found.append((-alike, abs(i - j), min(i, j), max(i, j), i, j))
    only = len(left) == len(right) == 1
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for unlike, _, _, _, i, j in sorted(found):
        if i not in partner and j not in taken and (only or -unlike >= _ALIKE):
            partner[i] = j
            taken.add(j)
    return partner


def _op_counts(graph: JointGraph) -> Counter[str]:
    return Counter(node.target for node in graph.nodes if node.kind is NodeKind.OP)


def _likeness(left: Counter[str], right: Counter[str]) -> float:
    """The share of ops that two regions have in common: twice the shared ones over all."""
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 1.0


def _paired(left: Sequence[JointGraph], right: Sequence[JointGraph], i: int, j: int) -> RegionPair:
    same = same_graphs(left[i], right[j])
    pairing = pair_equal(left[i], right[j]) if same else match_graphs(left[i], right[j])
    return RegionPair(i, j, pairing, same)


def _alone(graphs: Sequence[JointGraph], position: int) -> RegionPair:
    count = len(graphs[position].nodes)
    return RegionPair(position, -1, Pairing((-1,) * count, (), (None,) * count))


def same_graphs(left: JointGraph, right: JointGraph) -> bool:
    """Whether two regions are one graph by fingerprint."""
    return bool(left.fingerprint) and left.fingerprint == right.fingerprint and len(left.nodes) == len(right.nodes)


def pair_equal(left: JointGraph, right: JointGraph) -> Pairing:
    """The pairing of two graphs with one fingerprint: their canonical orders are the same."""
    right_of, left_of = [-1] * len(left.nodes), [-1] * len(right.nodes)
    for there, here in zip(canonical_order(left), canonical_order(right), strict=True):
        right_of[there], left_of[here] = here, there
    return Pairing(tuple(right_of), tuple(left_of), (Match.EXACT,) * len(right_of))
