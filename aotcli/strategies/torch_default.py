"""PyTorch's own `default_partition`, run on a copy of the captured graph: a reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition, Reason
from aotcli.strategies._contract import Strategy

if TYPE_CHECKING:
    from aotcli.capture.recorder import LiveRegion

_REASON = Reason("torch", "torch saves it")


@dataclass(frozen=True)
class TorchDefault(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "torch-default"
    summary: ClassVar[str] = "PyTorch's default partitioner itself, on a copy of the graph (a reference)"
    needs_live: ClassVar[bool] = True

    def partition_function(self) -> Callable[..., Any]:
        """PyTorch's function."""
        from aotcli.capture import torch_private_split

        return torch_private_split.default_partition_function()

    def plan(self, graph: JointGraph, live: LiveRegion | None = None) -> Partition:
        from aotcli.strategies._partition_fn import plan_with

        return plan_with(self.partition_function(), graph, live, _REASON, strategy=self.name, options=self.options)
