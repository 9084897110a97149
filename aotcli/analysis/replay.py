"""Random ops that can be run a second time with the numbers of the first: which, and what their saved state weighs.

The state of the generator is saved before the op runs in the forward, and set again around it in the backward
(`run_and_save_rng_state` of torch._prims). That works for an op that draws from the default generator of its device,
which is told by a `device` argument or by its tensors.
"""

from __future__ import annotations

from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref, Tag
from aotcli.ir.tensor import OpaqueSpec, tensor_leaves

STATE_BYTES = {"cpu": 5056, "cuda": 16}
"""Bytes of a generator's state by device type (torch 2.13: mt19937 on the CPU, seed and offset on CUDA)."""

_SEEDS = "inductor_seeds"


def is_replayable(graph: JointGraph, node: Node) -> bool:
    """Whether a random op can draw the same numbers again from a saved state."""
    if node.kind is not NodeKind.OP or Tag.RANDOM not in node.tags or node.target.startswith("higher_order."):
        return False
    keywords = dict(node.kwargs)
    if keywords.get("generator") is not None or _SEEDS in node.target:
        return False
    if any(_is_generator(graph, name) for name in node.refs):
        return False
    if device_type(node) not in STATE_BYTES:
        return False
    has_tensor = any(isinstance(arg, Ref) and tensor_leaves(graph[arg.name].value) for arg in node.args)
    return has_tensor or keywords.get("device") is not None


def _is_generator(graph: JointGraph, name: str) -> bool:
    value = graph[name].value
    return isinstance(value, OpaqueSpec) and value.type_name.endswith("Generator")


def device_type(node: Node) -> str:
    """The type of the device that a node computes on, "" where it makes no tensor."""
    leaves = tensor_leaves(node.value)
    return leaves[0].device.partition(":")[0] if leaves else ""


def state_nbytes(node: Node) -> int:
    """Bytes of the state that replaying a random op saves."""
    return STATE_BYTES.get(device_type(node), 0)


def is_worth_replaying(graph: JointGraph, node: Node) -> bool:
    """Whether the state weighs less than what the op draws."""
    drawn = sum(leaf.storage_nbytes for leaf in tensor_leaves(node.value))
    return is_replayable(graph, node) and state_nbytes(node) < drawn
