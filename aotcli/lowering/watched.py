"""A partition function that tells what was decided, on the way to compilation.

It stands wherever PyTorch takes a partition function (`aot_function`, `aot_module`, `aot_autograd`, and Inductor's
``custom_partitioner_fn``), hands the joint graph to the function that it wraps, and its modules on, unchanged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from aotcli.analysis.assemble import assemble
from aotcli.capture import torch_private, torch_private_split
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.reference import ReferenceSplit, read_decision
from aotcli.errors import AotcliError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition, Reason
from aotcli.lowering.partitioner import Modules, Partitioner, carry_out, live_region

Watcher = Callable[[JointGraph, Partition], None]
PartitionFn = Callable[..., Modules]


class WatchedPartitioner(torch_private_split.custom_partitioner_base()):
    """Partitions as `function` does, and calls `watcher` with each graph and the plan for it.

    `function` is a `Partitioner`, or a partition function of PyTorch's kind, whose plan is read off the modules that it
    returns. It has no key for caches: what is found in a cache is not partitioned, so it could not be watched. A
    watcher that fails with one of aotcli's errors is a warning, not an error: the model still compiles.
    """

    def __init__(self, function: PartitionFn, watcher: Watcher) -> None:
        self.function = function
        self.watcher = watcher

    def __call__(
        self,
        gm: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        compiler: str = "aot_eager",
        **rest: Any,
    ) -> Modules:
        given = {"num_fwd_outputs": num_fwd_outputs, "static_lifetime_input_indices": static_lifetime_input_indices}
        if torch_private.is_nested_region(joint_inputs):
            return self.function(gm, joint_inputs, **given, **rest)
        static = tuple(static_lifetime_input_indices or ())
        level = "inductor" if compiler == "inductor" else "aten"
        # What is compiled may be changed on the way: the graph that is looked at is a copy.
        kept = torch_private.copy_module(gm)
        live = live_region(kept, joint_inputs, num_fwd_outputs, static, level)
        if isinstance(self.function, Partitioner):
            modules, partition = carry_out(self.function.load(), live, rng=self.function.rng)
            self._tell(lambda: (live.graph, partition))
            return modules
        modules = self.function(gm, joint_inputs, **given, **rest)
        self._tell(lambda: (live.graph, _read(live, modules, gm, self.function)))
        return modules

    def _tell(self, found: Callable[[], tuple[JointGraph, Partition]]) -> None:
        try:
            self.watcher(*found())
        except AotcliError as error:
            warnings.warn(f"aotcli could not draw this graph: {error}", stacklevel=3)

    def __deepcopy__(self, memo: dict[int, Any]) -> WatchedPartitioner:
        """Itself: Inductor copies its settings, this one among them."""
        return self

    def uuid(self) -> None:
        return None


def _read(live: LiveRegion, modules: Modules, left: fx.GraphModule, function: PartitionFn) -> Partition:
    """The plan behind the modules that a function returned; `left` is what it left of the graph that it was given."""
    label = getattr(function, "__name__", type(function).__name__)
    split = ReferenceSplit(*modules, frozenset(node.name for node in left.graph.nodes), ())
    decision = read_decision(live.graph, split, Reason("partition function", f"{label} saves it"), label)
    return assemble(live.graph, decision, strategy=label)
