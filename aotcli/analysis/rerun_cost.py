"""What running each op of a graph once more costs: in operations, or in time on a device by the roofline model.

Roofline (S. Williams, A. Waterman, D. Patterson, CACM 52, 2009): an op takes as long as its arithmetic at the device's
peak or its bytes at the device's bandwidth, whichever is longer, and the launch of its kernel. Where the backend fuses
chains of pointwise ops into one kernel, what such an op reads from the op before stays in registers: it is charged
what it reads from elsewhere, and no launch. Times are whole picoseconds, so that plans are compared without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.cost import traffic
from aotcli.analysis.hardware import Hardware
from aotcli.analysis.obligations import VIEWS
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.tensor import tensor_leaves

PICOSECONDS_PER_S = 10**12
_GETITEM = "operator.getitem"


@dataclass(frozen=True, slots=True)
class RerunCosts:
    """Costs by position in `unit` ("ps" or "FLOP"). `unknown` names the ops that compute by no known formula: they are
    charged like the dearest op of the graph in FLOPs, and by their bytes alone in time."""

    costs: tuple[int, ...]
    unit: str
    unknown: tuple[str, ...]


def flop_costs(graph: JointGraph) -> RerunCosts:
    """Operations; 1 for an op that computes without being counted, so that what is reran for nothing is the least."""
    dearest = max((node.flops or 0 for node in graph.nodes), default=0)
    costs = [dearest if node.flops is None else max(node.flops, 1) if computes(node) else 0 for node in graph.nodes]
    return RerunCosts(tuple(costs), "FLOP", _unknown(graph.nodes))


def roofline_costs(graph: JointGraph, hardware: Hardware, *, fused: bool) -> RerunCosts:
    """Time on `hardware`, with or without chains of fusible ops in one kernel."""
    costs = [_picoseconds(graph, v, hardware, fused) if computes(n) else 0 for v, n in enumerate(graph.nodes)]
    return RerunCosts(tuple(costs), "ps", _unknown(graph.nodes))


def computes(node: Node) -> bool:
    """Whether running the node takes a device any time."""
    return node.kind is NodeKind.OP and node.target != _GETITEM and not node.tags & VIEWS


def _unknown(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.target for node in nodes if node.flops is None))


def _picoseconds(graph: JointGraph, position: int, hardware: Hardware, fused: bool) -> int:
    node = graph.nodes[position]
    moved = traffic(graph, node)
    nbytes = moved.read_bytes + moved.written_bytes
    launch = hardware.launch_s
    if fused and Tag.FUSIBLE in node.tags:
        inside = [source for source in graph.inputs_of[position] if _gives(graph.nodes[source])]
        kept = sum(leaf.nbytes for source in inside for leaf in tensor_leaves(graph.nodes[source].value))
        nbytes = moved.read_bytes - kept
        launch = 0.0 if inside else launch
    leaves = tensor_leaves(node.value)
    dtype = leaves[0].dtype if leaves else "float32"
    seconds = launch + max((node.flops or 0) / hardware.flops_of(dtype), nbytes / hardware.bytes_per_s)
    return max(round(seconds * PICOSECONDS_PER_S), 1)


def _gives(node: Node) -> bool:
    return node.kind is NodeKind.OP and Tag.FUSIBLE in node.tags
