"""PyTorch's own `default_partition`, run on a copy of the captured graph: a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition, Reason
from aotcli.strategies._contract import Strategy

if TYPE_CHECKING:
    from aotcli.capture.recorder import LiveRegion

_REASON = Reason("torch", "PyTorch's default partitioner saves it")


@dataclass(frozen=True)
class TorchDefault(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "torch-default"
    summary: ClassVar[str] = "PyTorch's default partitioner itself, on a copy of the graph (a reference)"
    needs_live: ClassVar[bool] = True

    def plan(self, graph: JointGraph, live: LiveRegion | None = None) -> Partition:
        from aotcli.capture import torch_private_split
        from aotcli.strategies._partition_fn import plan_with

        function = torch_private_split.default_partition_function()
        return plan_with(function, graph, live, _REASON, strategy=self.name, options=self.options)
