"""A partitioner that keeps what it did: the graph it was given, the plan, and the modules that it handed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from aotcli.capture import torch_private, torch_private_split
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.torch_private_validate import compiling_as
from aotcli.ir.partition import Partition
from aotcli.lowering.partitioner import carry_out, live_region
from aotcli.strategies import Strategy


@dataclass(frozen=True)
class ObservedRegion:
    """One region as it was compiled; `compiled_as` is AOTAutograd's number of it."""

    live: LiveRegion
    partition: Partition
    forward: fx.GraphModule
    backward: fx.GraphModule
    compiled_as: int


class Observer(torch_private_split.custom_partitioner_base()):
    """Partitions as `Partitioner` does, and remembers. It has no key for caches: nothing may be taken from one."""

    def __init__(self, strategy: Strategy, rng: str = "eager") -> None:
        self.strategy = strategy
        self.rng = rng
        self.regions: list[ObservedRegion] = []

    def __call__(
        self,
        gm: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        compiler: str = "aot_eager",
        **rest: Any,
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        if torch_private.is_nested_region(joint_inputs):
            return torch_private.default_partition(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs)
        static = tuple(static_lifetime_input_indices or ())
        level = "inductor" if compiler == "inductor" else "aten"
        # What is compiled may be changed on the way: the graph that is kept is a copy.
        kept = torch_private.copy_module(gm)
        live = live_region(kept, joint_inputs, num_fwd_outputs, static, level)
        (forward, backward), partition = carry_out(self.strategy, live, rng=self.rng)
        self.regions.append(ObservedRegion(live, partition, forward, backward, compiling_as()))
        return forward, backward

    def __deepcopy__(self, memo: dict[int, Any]) -> Observer:
        """Itself: Inductor copies its settings, this one among them, and what a copy saw would be lost."""
        return self

    def uuid(self) -> None:
        return None
