"""Partition functions of torch's kind as strategies: PyTorch's own, and a user's from a file or an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from aotcli.analysis.assemble import assemble
from aotcli.analysis.mincut_mutation import mutated_reads
from aotcli.analysis.roles import classify
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph, Tag
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.strategies._contract import Strategy

if TYPE_CHECKING:
    from aotcli.capture.recorder import LiveRegion


def plan_with(
    function: Callable[..., Any],
    graph: JointGraph,
    live: LiveRegion | None,
    reason: Reason,
    *,
    strategy: str,
    options: Mapping[str, object],
) -> Partition:
    """The partition that a partition function makes of a captured region.

    A region without a backward is never given to a partition function. Raises StrategyError without a live region, and
    where the function fails or splits in a way that no set of saved values explains.
    """
    if live is None:
        raise StrategyError(
            f"strategy {strategy} needs the live model",
            why="it runs a function of PyTorch's kind on the captured graph, and a record holds no GraphModule",
            fix=f"aotcli partition MODEL --strategy {strategy}, with the model file instead of the record",
        )
    from aotcli.capture.reference import read_decision, run_partition_function

    if not graph.has_backward:
        return assemble(graph, Decision(saved=()), strategy=strategy, options=options)
    decision = read_decision(graph, run_partition_function(function, live, strategy), reason, strategy)
    partition = assemble(graph, decision, strategy=strategy, options=options)
    return replace(partition, notes=(*partition.notes, *_hazards(graph, partition)))


def _hazards(graph: JointGraph, partition: Partition) -> tuple[str, ...]:
    """What such a split gets wrong without a word: PyTorch 2.13 does both (issues 190758 and 185876 on its tracker)."""
    recomputed = set(partition.recomputed)
    redrawn = [name for name in recomputed if Tag.RANDOM in graph[name].tags and not graph[name].must_recompute]
    mutated = mutated_reads(graph, classify(graph))
    stale = sorted(recomputed.intersection(graph.nodes[position].name for position in mutated.banned))
    notes: list[str] = []
    if redrawn:
        notes.append(
            "wrong gradients: random ops run again in the backward and draw other numbers there"
            f" ({', '.join(sorted(redrawn)[:3])}{', ...' if len(redrawn) > 3 else ''})"
        )
    if stale:
        source = graph[mutated.source[graph.index[stale[0]]]]
        notes.append(
            f"wrong gradients: {stale[0]} runs again in the backward, after the step has changed what it reads"
            f" ({source.origin or source.name})"
        )
    return tuple(notes)


@dataclass(frozen=True)
class PartitionFunction(Strategy):
    """A user's partition function. `label` is the name under which it was asked for."""

    name: ClassVar[str] = "partition-function"
    summary: ClassVar[str] = "a partition function of AOTAutograd's kind, run on a copy of the captured graph"
    needs_live: ClassVar[bool] = True

    function: Callable[..., Any]
    label: str

    @property
    def options(self) -> dict[str, object]:
        """None: what such a function takes is fixed by PyTorch."""
        return {}

    def partition_function(self) -> Callable[..., Any]:
        """The user's function."""
        return self.function

    def plan(self, graph: JointGraph, live: LiveRegion | None = None) -> Partition:
        reason = Reason("partition function", f"{self.label} saves it")
        return plan_with(self.function, graph, live, reason, strategy=self.label, options=self.options)
