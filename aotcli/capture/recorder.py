"""Records every region that Dynamo compiles: a backend whose partition function snapshots the joint graph.

`level` chooses the plug point: `aot_autograd(partition_fn=...)` for "aten", Inductor's `custom_partitioner_fn` for
"inductor" (aotcli/capture/torch_private.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from aotcli.capture import step, torch_private, torch_private_breaks
from aotcli.capture.origins import path_of_source
from aotcli.capture.snapshot import PrimalFacts, SnapshotContext, snapshot_joint
from aotcli.capture.torch_private import pytree
from aotcli.capture.torch_private_split import min_cut_partition_function
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.trace import GraphBreak
from aotcli.ir.verify import verify_graph

_STEP_FILE = step.__file__


@dataclass(frozen=True)
class LiveRegion:
    """One captured region with the GraphModule it was read from.

    `gm` is the joint graph before partitioning: readers copy it (`torch_private.copy_module`), never change it. For a
    forward-only region it is the forward graph.
    """

    graph: JointGraph
    gm: fx.GraphModule
    joint_inputs: Any
    num_fwd_outputs: int
    static_indices: tuple[int, ...]
    level: str


class Recorder:
    """The Dynamo backend of a capture.

    `tensors` maps `id(tensor)` to what it is in the model (parameters and buffers). With `execute` the regions run
    for real (needed where values decide what comes next); without it each region hands on outputs of the right shape
    and computes nothing. `state` collects the parameters and buffers that the regions read, by identity: those of a
    function are known from nowhere else.
    """

    def __init__(
        self,
        context: SnapshotContext,
        tensors: Mapping[int, PrimalFacts],
        *,
        execute: bool,
        progress: Callable[[str], None],
    ) -> None:
        self.regions: list[LiveRegion] = []
        self.breaks: list[GraphBreak] = []
        self._context = context
        self._region_context = context
        self._tensors = tensors
        self._execute = execute
        self._progress = progress
        self._primals: dict[int, PrimalFacts] = {}
        self.state: dict[int, tuple[NodeKind, torch.Tensor]] = {}

    def backend(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        """What `torch.compile` calls for each region."""
        self._progress(f"region {len(self.regions) + 1}: tracing the joint graph")
        self._region_context = replace(self._context, outside=self._owner_of_frame())
        given = torch_private.graph_inputs(gm)
        self._primals = {i: self._facts(*each) for i, each in enumerate(given)}
        for (_, example), facts in zip(given, self._primals.values(), strict=True):
            if isinstance(example, torch.Tensor) and facts.kind in (NodeKind.PARAM, NodeKind.BUFFER):
                self.state[id(example)] = (facts.kind, example)
        reason = torch_private_breaks.break_reason(gm)
        if reason is not None:
            text, place = reason
            where = None if place is None else self.place(place)
            self.breaks.append(GraphBreak(text, where))
        make = torch_private.inductor_backend if self._context.level == "inductor" else torch_private.aten_backend
        return make(self._partition, self._compile, self._compile_forward_only)(gm, inputs)

    def _owner_of_frame(self) -> str:
        """The module path of ops that run in no submodule of the frame being compiled.

        After a graph break Dynamo compiles frames by themselves, and a frame's own `self` is in no module stack.
        """
        file, this = torch_private.compiling_frame()
        if file == _STEP_FILE:
            return self._context.outside
        return self._context.origins.name_of(this) or ""

    def place(self, location: str) -> str:
        """``file:line`` with an absolute path, made relative."""
        return self._context.origins.place(location)

    def _facts(self, source: str, example: Any) -> PrimalFacts:
        known = self._tensors.get(id(example)) if example is not None else None
        if known is not None and known.origin is not None:
            return known
        # After a graph break Dynamo may hold a parameter through a fresh wrapper: its source still says what it is.
        if "._parameters[" in source:
            return PrimalFacts(NodeKind.PARAM, path_of_source(source).removeprefix("model."))
        if "._buffers[" in source:
            return PrimalFacts(NodeKind.BUFFER, path_of_source(source).removeprefix("model."))
        return PrimalFacts(NodeKind.INPUT if known is None else known.kind, self._context.input_name(source))

    def _partition(
        self,
        gm: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        **rest: Any,
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        if torch_private.is_nested_region(joint_inputs):
            # The split of a nested body shows in the outer graph: it has to be the one that aotcli's partitioner makes.
            return min_cut_partition_function(1.0)(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs)
        static = tuple(static_lifetime_input_indices or ())
        self._record(gm, joint_inputs, num_fwd_outputs, static, has_backward=True)
        if not self._execute:
            return torch_private.stub_halves(gm, num_fwd_outputs)
        return torch_private.default_partition(
            torch_private.copy_module(gm),
            joint_inputs,
            num_fwd_outputs=num_fwd_outputs,
            static_lifetime_input_indices=list(static),
        )

    def _record(
        self, gm: fx.GraphModule, inputs: Any, num_outputs: int, static: tuple[int, ...], *, has_backward: bool
    ) -> None:
        graph = snapshot_joint(
            gm,
            self._region_context,
            num_forward_outputs=num_outputs,
            static_indices=static,
            primals=self._primals,
            has_backward=has_backward,
            name=f"region{len(self.regions)}",
        )
        verify_graph(graph)
        self._progress(f"region {len(self.regions) + 1}: {len(graph.nodes):,} nodes")
        self.regions.append(LiveRegion(graph, gm, inputs, num_outputs, static, self._context.level))

    def _compile(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if self._execute:
            return torch_private.boxed(as_compiled(gm))
        return _signature_only(gm)

    def _compile_forward_only(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        outputs = next(node for node in gm.graph.nodes if node.op == "output").args[0]
        count = len(outputs) if isinstance(outputs, (tuple, list)) else 1
        static = tuple(i for i, facts in self._primals.items() if facts.kind in (NodeKind.PARAM, NodeKind.BUFFER))
        self._record(gm, inputs, count, static, has_backward=False)
        return self._compile(gm, inputs)


def as_compiled(gm: fx.GraphModule) -> Callable[..., Any]:
    """`gm` as compiled code runs: autograd is outside of it, must not watch what it changes in place, and gets buffers.

    A view of what the region computed comes out as a tensor of its own, as from generated code. Autograd would forbid
    the step to change a view in place that was made while it looked away.
    """

    def run(*args: Any) -> Any:
        given = {id(arg) for arg in args}
        with torch.no_grad():
            return pytree.tree_map_only(
                torch.Tensor,
                lambda result: result.detach() if result._is_view() and id(result) not in given else result,
                gm(*args),
            )

    return run


def _signature_only(gm: fx.GraphModule) -> Any:
    """A boxed callable that returns fresh values of the outputs' shapes, and inputs where the output is an input."""
    placeholders = {node: i for i, node in enumerate(gm.graph.find_nodes(op="placeholder"))}
    outputs = next(node for node in gm.graph.nodes if node.op == "output").args[0]
    flat = outputs if isinstance(outputs, (tuple, list)) else (outputs,)

    def run(args: list[Any]) -> list[Any]:
        results = [args[placeholders[n]] if n in placeholders else _fresh(n) for n in flat]
        args.clear()
        return results

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _fresh(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, fx.Node) else node
    if isinstance(value, torch.Tensor):
        hint = torch_private.size_hint
        return torch.empty_strided(
            [hint(dim) for dim in value.shape],
            [hint(dim) for dim in value.stride()],
            dtype=value.dtype,
            device=value.device,
        )
    if isinstance(value, torch.SymInt):
        return torch_private.size_hint(value)
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return value.node.hint
    return value
