"""Whether a plan keeps its limits: pure arithmetic on what is demanded, what the baseline has and what is now.

    judge_figures(limits, before, now)   -> breaches of saved_bytes, peak_bytes, recompute_flops
    judge_ops(limits, regions, baseline) -> forbidden ops that a graph has
    judge_structure(limits, found)       -> a graph that is not the baseline's
    find_gains(limits, before, now)      -> figures that fell by more than they may grow

`before` is None where there is no baseline: `max` and `forbid_ops` are demanded all the same. Breaches come without
contributors; aotcli/analysis/limits_contributors.py finds those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.ir.check import FigureBreach, Figures, Gain, Limits, OpBreach, Structure, StructureBreach
from aotcli.ir.fingerprint import canonical_order, fingerprint
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.plan import describe_node


def judge_figures(limits: Limits, before: Figures | None, now: Figures) -> tuple[FigureBreach, ...]:
    """The figures above their limits, in the order in which the limits are given; `max` before growth."""
    breaches: list[FigureBreach] = []
    for limit in limits.figures:
        amount = now.of(limit.quantity)
        known = None if before is None else before.of(limit.quantity)
        if limit.most is not None and amount > limit.most:
            breaches.append(FigureBreach(limit.quantity, amount, limit.most, known))
        if limit.growth is not None and known is not None and amount > limit.growth.above(known):
            breaches.append(FigureBreach(limit.quantity, amount, limit.growth.above(known), known, limit.growth))
    return tuple(breaches)


def find_gains(limits: Limits, before: Figures, now: Figures) -> tuple[Gain, ...]:
    """The figures that fell below their baseline by more than they may rise above it."""
    return tuple(
        Gain(limit.quantity, before.of(limit.quantity), now.of(limit.quantity))
        for limit in limits.figures
        if limit.growth is not None and now.of(limit.quantity) < limit.growth.below(before.of(limit.quantity))
    )


def judge_ops(
    limits: Limits, regions: Sequence[JointGraph], baseline: Sequence[JointGraph] | None
) -> tuple[OpBreach, ...]:
    """A breach for each op that a pattern of `forbid_ops` forbids and that lives in a graph, nested graphs included."""
    breaches: list[OpBreach] = []
    for pattern in limits.forbid_ops:
        now = _count(matching_nodes(pattern, regions))
        before = None if baseline is None else _count(matching_nodes(pattern, baseline))
        for op, count in now.items():
            breaches.append(OpBreach(pattern, op, count, None if before is None else before.get(op, 0)))
    return tuple(breaches)


def matching_nodes(pattern: str, regions: Sequence[JointGraph]) -> list[tuple[JointGraph, Node]]:
    """The living ops that `pattern` means, each with the graph that it is in: ``aten.mm``, ``aten.mm.default`` or a
    pattern such as ``aten.*attention*``."""
    matches = re.compile(translate(pattern)).match
    return [
        (graph, node)
        for region in regions
        for graph in _with_nested(eliminate_dead(region)[0])
        for node in graph.nodes
        if node.kind is NodeKind.OP and (matches(node.target) or matches(node.packet))
    ]


def _with_nested(graph: JointGraph) -> Iterator[JointGraph]:
    yield graph
    for _, inner in graph.subgraphs:
        yield from _with_nested(inner)


def _count(found: Sequence[tuple[JointGraph, Node]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, node in found:
        counts[node.target] = counts.get(node.target, 0) + 1
    return counts


def judge_structure(limits: Limits, found: Structure, first: str = "") -> tuple[StructureBreach, ...]:
    """A breach where the graphs are less alike than `structure` demands; `found` is what `compare_structure` says, and
    `first` where they first differ."""
    kept = {
        Structure.EXACT: (Structure.EXACT,),
        Structure.EQUIVALENT: (Structure.EXACT, Structure.EQUIVALENT),
        Structure.IGNORE: tuple(Structure),
    }
    return () if found in kept[limits.structure] else (StructureBreach(limits.structure, found, first),)


def compare_structure(before: Sequence[JointGraph], now: Sequence[JointGraph]) -> Structure:
    """How alike two captures are: EXACT, EQUIVALENT, or (IGNORE) neither."""
    if _fingerprints(before) == _fingerprints(now):
        return Structure.EXACT
    if len(before) == len(now) and _fingerprints(map(_reduced, before)) == _fingerprints(map(_reduced, now)):
        return Structure.EQUIVALENT
    return Structure.IGNORE


def _fingerprints(graphs: Iterable[JointGraph]) -> list[str]:
    return [fingerprint(graph) for graph in graphs]


def _reduced(graph: JointGraph) -> JointGraph:
    """`graph` without dead code and with common subexpressions merged."""
    return eliminate_common(eliminate_dead(graph)[0])[0]


def first_difference(before: Sequence[JointGraph], now: Sequence[JointGraph]) -> str:
    """Where two captures first differ, in canonical order, as a phrase."""
    if len(before) != len(now):
        return f"{len(now)} regions instead of {len(before)}"
    for old, new in zip(before, now, strict=True):
        if fingerprint(old) != fingerprint(new):
            region = f"{new.name}: " if len(now) > 1 else ""
            return f"{region}{_first_node(old, new)}"
    return ""


def _first_node(before: JointGraph, now: JointGraph) -> str:
    for old_position, position in zip(canonical_order(before), canonical_order(now), strict=False):
        old, new = describe_node(before.nodes[old_position]), describe_node(now.nodes[position])
        if old != new:
            node = now.nodes[position]
            place = f" in {node.module}" if node.module else ""
            return f"{node.name}{place} is {new}, and was {old}"
    if len(before.nodes) != len(now.nodes):
        return f"{len(now.nodes)} nodes instead of {len(before.nodes)}"
    return "the ops are the same, with other arguments, strides, aliases or static inputs"
