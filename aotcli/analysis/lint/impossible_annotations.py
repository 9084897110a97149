"""Checkpoint annotations that no plan can keep.

Either a value may neither be saved nor recomputed: one annotation says that it must be saved (or its op must not run
twice), it is a tuple and cannot be saved, and another annotation says that its parts must be recomputed. PyTorch 2.13
then stops with "This is a bug in PyTorch". Or an annotation asks to recompute what reads an input that the step changes
in place: the second run would read the new value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.lint._contract import Hit, Rule, Subject
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.mincut_bans import Bans, find_bans
from aotcli.analysis.mincut_conflict import infinite_paths
from aotcli.analysis.mincut_problem import Heuristic, Problem, pose
from aotcli.analysis.mincut_weights import find_weights
from aotcli.analysis.op_names import node_label
from aotcli.ir.finding import Place, Remedy
from aotcli.ir.joint import JointGraph, Node
from aotcli.ir.tensor import TensorSpec


class ImpossibleAnnotations(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT001"
    name: ClassVar[str] = "impossible annotations"
    summary: ClassVar[str] = "checkpoint annotations that contradict each other, or an in-place change"
    rank: ClassVar[int] = 0

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            if region.graph.has_backward and any(node.checkpoint is not None for node in region.graph.nodes):
                yield from _contradictions(region.graph)
                yield from _changed_in_place(region)


def _contradictions(graph: JointGraph) -> Iterator[Hit]:
    problem = pose(eliminate_common(eliminate_dead(graph)[0])[0], Heuristic())
    bans = find_bans(problem)
    for path in infinite_paths(problem, bans, find_weights(problem)):
        first, last = problem.graph.nodes[path[0]], problem.graph.nodes[path[-1]]
        if first.checkpoint is not None or last.checkpoint is not None:
            yield _contradiction(problem, bans, path, first, last)


def _contradiction(problem: Problem, bans: Bans, path: list[int], first: Node, last: Node) -> Hit:
    graph = problem.graph
    start, end = node_label(graph, first), node_label(graph, last)
    cause = first.checkpoint or f"{bans[path[0]]}: it may not run twice"
    wish = last.checkpoint or "needed by the backward"
    detail = f"{start} may not be recomputed ({cause}) and cannot be saved (it is {_unsaveable(first)}); "
    detail += f"{end} may not be saved ({wish}), and the backward needs it"
    return Hit(
        region=graph.name,
        values=tuple(graph.nodes[position].name for position in path),
        module=first.module,
        module_type=first.module_type,
        what=start,
        shape=None,
        dtype="",
        source=first.source,
        nbytes=0,
        detail=detail,
        remedy=_remedy(first, last, start, end),
        places=(Place(f"{cause} on {start}", first.source), Place(f"{wish} on {end}", last.source)),
    )


def _remedy(first: Node, last: Node, start: str, end: str) -> Remedy:
    if first.checkpoint == "MUST_SAVE":
        text = f"give {end} the policy of {start}, whose part it is: both are saved, or both recomputed"
        return Remedy(text, (f'node.meta["recompute"] = CheckpointPolicy.MUST_SAVE  # {end}',))
    return Remedy(f"let {end} be saved", (f'node.meta["recompute"] = CheckpointPolicy.PREFER_SAVE  # {end}',))


def _unsaveable(node: Node) -> str:
    return "a tuple" if isinstance(node.value, tuple) else "no tensor"


def _changed_in_place(region: PlannedRegion) -> Iterator[Hit]:
    """Values that are saved against their policy, because a second run would read a changed input."""
    if region.partition is None or not region.graph.mutated:
        return
    changes = {str(node.refs[0]): node for node in region.graph.nodes if node.target == "aten.copy_.default"}
    for value in region.partition.saved:
        node = region.graph[value.name]
        if node.must_recompute and value.reason.rule == "mutated input":
            changed = region.changed_input(node.name)
            yield _unkept(region, node, changed, changes.get(changed.name), value.nbytes)


def _unkept(region: PlannedRegion, node: Node, changed: Node, change: Node | None, nbytes: int) -> Hit:
    label, name = node_label(region.graph, node), changed.origin or changed.name
    spec = node.value if isinstance(node.value, TensorSpec) else None
    return Hit(
        region=region.graph.name,
        values=(node.name,),
        module=node.module,
        module_type=node.module_type,
        what=label,
        shape=spec.shape if spec is not None else None,
        dtype=spec.dtype if spec is not None else "",
        source=node.source,
        nbytes=nbytes,
        detail=f"{label} is saved against its policy: it reads {name}, which the step changes in place, so that "
        "a second run would compute something else",
        remedy=Remedy(f"change {name} before or after the checkpointed block, or read a copy of it: {name}.clone()"),
        places=(
            Place(f"{node.checkpoint} on {label}", node.source),
            Place(f"{name} is changed", change.source if change is not None else changed.source),
        ),
    )
