"""From a captured graph and a partition to the two modules that run.

Each half is built once, in the order of our cut, straight from the captured nodes. PyTorch's own extraction builds each
half of the joint graph up to three times, dead code included, and costs six times as much (9,600 nodes: 1.2 s against
0.2 s); it stays as the oracle: tests hold the modules equal to its own, node by node. The calling convention is that of
AOTAutograd's runtime: what the forward returns is described by the classes that the runtime itself uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from torch import fx

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import Half, cut
from aotcli.capture import torch_private_split as private
from aotcli.capture.recorder import LiveRegion
from aotcli.errors import StrategyError
from aotcli.ir.joint import Arg, JointGraph, Ref, Tag
from aotcli.ir.partition import Partition


def split(live: LiveRegion, partition: Partition, *, rng: str = "eager") -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward module of `partition`; the captured graph is left as it is.

    Random ops that run in both halves draw the same numbers in both: their state is saved and set again; with `rng`
    "graphsafe", through PyTorch's graph-safe generators on devices that have them. Raises StrategyError where the
    partition is for another graph or the region has no backward.
    """
    _check(live, partition)
    halves = cut(live.graph, decision_of(partition))
    replayed = _replayed(live.graph, partition)
    source = _Source(live.gm, partition)
    described = private.output_descriptions(live.gm)
    own, gradients = described[: live.num_fwd_outputs], described[live.num_fwd_outputs :]
    handed_over = private.saved_descriptions(len(halves.saved), halves.version_checked, len(halves.saved_tensors))
    with private.compiling(live.gm):
        forward = source.module(halves.forward, [*own, *handed_over])
        backward = source.module(halves.backward, gradients)
        for node in backward.graph.nodes:
            if node.op in ("call_function", "get_attr"):
                node.meta["autograd_backward"] = True
        if replayed:
            joint = private.tagged_copy(live.gm, replayed)
            forward, backward = private.replay_random_ops(
                joint, forward, backward, len(halves.saved_symints), graphsafe=rng == "graphsafe"
            )
        forward = private.thread_random_states(forward, is_backward=False)
        backward = private.thread_random_states(backward, is_backward=True)
    return forward, backward


def _check(live: LiveRegion, partition: Partition) -> None:
    if partition.fingerprint != live.graph.fingerprint:
        raise StrategyError(
            f"this plan is for another graph than {live.graph.name}",
            why=f"it was made for {partition.fingerprint}, and this graph is {live.graph.fingerprint}",
            fix="plan again for this model, with the same torch, level and device",
        )
    if not live.graph.has_backward:
        raise StrategyError(
            f"{live.graph.name} has no backward to split off",
            why="nothing that it computes needs a gradient",
            fix="run it as it is",
        )


def _replayed(graph: JointGraph, partition: Partition) -> frozenset[str]:
    """Recomputed ops that draw random numbers: the backward must draw the same ones."""
    return frozenset(name for name in partition.recomputed if Tag.RANDOM in graph[name].tags)


class _Source:
    """The captured graph as what halves are copied from; common subexpressions read what stands for them."""

    def __init__(self, gm: fx.GraphModule, partition: Partition) -> None:
        self._gm = gm
        self._nodes = {node.name: node for node in gm.graph.nodes}
        self._stood_for: dict[str, list[fx.Node]] = {}
        for old, new in partition.replaced.items():
            while new in partition.replaced:
                new = partition.replaced[new]
            self._stood_for.setdefault(new, []).append(self._nodes[old])

    def module(self, half: Half, descriptions: Sequence[Any]) -> fx.GraphModule:
        """A module with the placeholders, nodes, order and outputs of `half`."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        for name in half.inputs:
            placeholder = graph.placeholder(name)
            placeholder.meta = copy(self._nodes[name].meta)
            self._enter(name, placeholder, copies)
        for node in half.nodes:
            copied = graph.node_copy(self._nodes[node.name], copies.__getitem__)
            self._enter(node.name, copied, copies)
        returned = tuple(self._returned(arg, copies) for arg in half.outputs)
        output = graph.output(returned)
        output.meta["desc"] = list(descriptions)
        traces = [each.meta.get("stack_trace") if isinstance(each, fx.Node) else None for each in returned]
        output.meta["output_stack_traces"] = traces
        return private.make_module(self._gm, graph)

    def _enter(self, name: str, new: fx.Node, copies: dict[fx.Node, fx.Node]) -> None:
        copies[self._nodes[name]] = new
        for old in self._stood_for.get(name, ()):
            copies[old] = new

    def _returned(self, arg: Arg, copies: dict[fx.Node, fx.Node]) -> Any:
        return copies[self._nodes[arg.name]] if isinstance(arg, Ref) else arg
