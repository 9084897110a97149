"""What ops cost: floating-point operations, bytes read and written, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.tensor import tensor_leaves


@dataclass(frozen=True, slots=True)
class FlopCount:
    """Operations of ops with a known formula, and the names of ops that compute but have none."""

    flops: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one op reads from memory and writes to it, were it run alone. A view moves nothing."""

    read_bytes: int
    written_bytes: int


def count_flops(nodes: Iterable[Node]) -> FlopCount:
    """Sum over `nodes`; each op without a formula is named once."""
    flops = 0
    unknown: dict[str, None] = {}
    for node in nodes:
        if node.flops is None:
            unknown[node.target] = None
        else:
            flops += node.flops
    return FlopCount(flops, tuple(unknown))


def count_ops(nodes: Iterable[Node]) -> dict[str, int]:
    """How often each op (without overload) occurs, most frequent first; getitems and attributes left out."""
    counts = Counter(node.packet for node in nodes if node.kind is NodeKind.OP and node.target != "operator.getitem")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def traffic(graph: JointGraph, node: Node) -> Traffic:
    """Bytes in and out of `node`: every argument once, and every result that is no view of an argument."""
    if node.kind is not NodeKind.OP:
        return Traffic(0, 0)
    arguments = [leaf for name in node.refs for leaf in tensor_leaves(graph[name].value)]
    storages = {leaf.storage for leaf in arguments if leaf.storage >= 0}
    fresh = [leaf for leaf in tensor_leaves(node.value) if leaf.storage not in storages]
    if not fresh:
        return Traffic(0, 0)
    return Traffic(sum(leaf.nbytes for leaf in arguments), sum(leaf.nbytes for leaf in fresh))
