"""From a captured graph and a partition to the two modules that run.

The calling convention between them is the runtime's, so extraction goes through torch's helper; what is saved, which
common subexpressions are merged, in which order nodes run and which random ops are replayed is decided here. The final
lists come from our own cut, and so does the order: nothing is rebuilt after extraction, nodes are only moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import fx

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import Half, Halves, cut
from aotcli.capture import torch_private_split as private
from aotcli.capture.recorder import LiveRegion
from aotcli.errors import StrategyError, VerificationError
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Tag
from aotcli.ir.partition import Partition


def split(live: LiveRegion, partition: Partition) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward module of `partition`; the captured graph is left as it is.

    Raises StrategyError where the partition is for another graph or the region has no backward, VerificationError where
    torch's extraction disagrees with our cut.
    """
    _check(live, partition)
    halves = cut(live.graph, decision_of(partition))
    replayed = _replayed(live.graph, partition)
    with private.compiling(live.gm):
        joint = private.copy_joint(live.gm, partition.replaced)
        nodes = {node.name: node for node in joint.graph.nodes}
        private.tag_replayed(joint, frozenset(replayed))
        forward, backward = private.extract_halves(
            joint,
            [nodes[name] for name in (*halves.saved_tensors, *_backward_states(live.graph, halves))],
            [nodes[name] for name in halves.saved_opaque],
            [nodes[name] for name in halves.saved_symints],
            num_fwd_outputs=live.num_fwd_outputs,
            static_nodes=[nodes[name] for name in live.graph.static_inputs],
        )
        _arrange(forward, halves.forward, "forward")
        _arrange(backward, halves.backward, "backward")
        if replayed:
            forward, backward = private.replay_random_ops(joint, forward, backward, len(halves.saved_symints))
        forward = private.thread_random_states(forward, is_backward=False)
        backward = private.thread_random_states(backward, is_backward=True)
        forward.recompile()
        backward.recompile()
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


def _replayed(graph: JointGraph, partition: Partition) -> list[str]:
    """Recomputed ops that draw random numbers: the backward must draw the same ones."""
    return [name for name in partition.recomputed if Tag.RANDOM in graph[name].tags]


def _backward_states(graph: JointGraph, halves: Halves) -> list[str]:
    """BackwardState objects: extraction wants them among the saved values and takes them out itself."""
    saved = set(halves.saved)
    return [name for name in halves.backward.inputs if graph[name].kind in PRIMAL_KINDS and name not in saved]


def _arrange(module: fx.GraphModule, half: Half, side: str) -> None:
    """Put the nodes of an extracted module into the order of our cut, and drop those that the cut drops.

    The two extractions are independent: whatever one has and the other lacks is a fault, and is reported here.
    """
    graph = module.graph
    present = {node.name: node for node in graph.nodes if node.op in ("call_function", "get_attr")}
    inputs = [node.name for node in graph.find_nodes(op="placeholder")]
    _compare(inputs, half.inputs, f"inputs of the {side}")
    wanted = [node.name for node in half.nodes]
    missing = [name for name in wanted if name not in present]
    if missing:
        _compare(list(present), wanted, f"nodes of the {side}")
    (anchor,) = graph.find_nodes(op="output")
    for name in reversed(wanted):
        node = present.pop(name)
        if anchor.prev is not node:
            anchor.prepend(node)
        anchor = node
    for node in reversed(list(present.values())):
        if node.users:
            _compare([*wanted, node.name], wanted, f"nodes of the {side}")
        graph.erase_node(node)


def _compare(found: Sequence[str], expected: Iterable[str], what: str) -> None:
    expected = list(expected)
    if list(found) == expected:
        return
    extra = [name for name in found if name not in set(expected)]
    lacking = [name for name in expected if name not in set(found)]
    raise VerificationError(
        f"torch's extraction and the plan differ in the {what}",
        why=f"only torch has {extra[:5] or 'none'}, only the plan has {lacking[:5] or 'none'}",
        fix="report it with the record (aotcli trace -o) and the strategy",
    )
