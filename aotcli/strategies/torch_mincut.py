"""PyTorch's own `min_cut_rematerialization_partition`, run on a copy of the captured graph: a reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition, Reason
from aotcli.strategies._contract import Strategy

if TYPE_CHECKING:
    from aotcli.capture.recorder import LiveRegion

_REASON = Reason("torch", "torch saves it")


@dataclass(frozen=True)
class TorchMinCut(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "torch-mincut"
    summary: ClassVar[str] = "PyTorch's min-cut partitioner itself, on a copy of the graph (a reference)"
    needs_live: ClassVar[bool] = True

    budget: float = field(
        default=1.0, metadata={"help": "activation_memory_budget: 1 saves what runs fastest, 0 only the inputs"}
    )

    def __post_init__(self) -> None:
        if not 0 <= self.budget <= 1:
            raise StrategyError(
                f"a budget of {self.budget:g} is outside 0 to 1",
                why="torch-mincut passes it to PyTorch, which takes a fraction of what its min cut saves",
                fix="give a number between 0 and 1",
            )

    def partition_function(self) -> Callable[..., Any]:
        """PyTorch's function."""
        from aotcli.capture import torch_private_split

        return torch_private_split.min_cut_partition_function(self.budget)

    def plan(self, graph: JointGraph, live: LiveRegion | None = None) -> Partition:
        from aotcli.strategies._partition_fn import plan_with

        return plan_with(self.partition_function(), graph, live, _REASON, strategy=self.name, options=self.options)
