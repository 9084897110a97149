"""Partition functions of torch's kind as strategies: PyTorch's own, and a user's from a file or an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from aotcli.analysis.assemble import assemble
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph
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

    if graph.has_backward:
        decision = read_decision(graph, run_partition_function(function, live, strategy), reason, strategy)
    else:
        decision = Decision(saved=())
    return assemble(graph, decision, strategy=strategy, options=options)


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

    def plan(self, graph: JointGraph, live: LiveRegion | None = None) -> Partition:
        reason = Reason("partition function", f"{self.label} saves it")
        return plan_with(self.function, graph, live, reason, strategy=self.label, options=self.options)
