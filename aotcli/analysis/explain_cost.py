"""What getting a value a second time costs: the ops that run again, what they start from, FLOPs and memory traffic.

The time is a guess and says so: each op alone, limited by its FLOPs or by the bytes that it reads and writes (the
roofline of S. Williams, A. Waterman and D. Patterson, 2009), at round speeds of a device of that kind. What fuses is
faster. The share of the step, guessed in the same way, says more than the seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aotcli.analysis.cost import count_flops, traffic
from aotcli.analysis.explain_region import PlannedRegion, is_free, readable
from aotcli.analysis.replay import device_type
from aotcli.ir.explanation import Chain, ChainSource, Estimate, SourceKind
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.partition import Category
from aotcli.ir.tensor import tensor_leaves

SPEEDS: Mapping[str, tuple[float, float]] = {"cpu": (1e12, 1e11), "cuda": (1e14, 2e12)}
"""FLOP/s and bytes/s by device type: a server processor with all its cores, a data-centre GPU at half precision."""


def chain_to(after: PlannedRegion, name: str, before: PlannedRegion | None = None) -> Chain | None:
    """The ops that run again in the backward for the value `name`, itself among them; None where none do.

    Sources that the plan `before` does not save are marked as newly saved.
    """
    if name not in after.recomputed:
        return None
    seen: set[str] = {name}
    queue = [name]
    sources: dict[str, None] = {}
    for each in queue:
        for read in after.backward_half[each].refs:
            if read in seen:
                continue
            seen.add(read)
            if read in after.recomputed:
                queue.append(read)
            else:
                sources[read] = None
    order = {each: place for place, each in enumerate(after.backward_half)}
    nodes = [after.backward_half[each] for each in sorted(queue, key=order.__getitem__)]
    computing = [node for node in nodes if not is_free(node)]
    flops = count_flops(nodes)
    graph = after.graph
    return Chain(
        ops=readable(graph, [node.name for node in computing]),
        views=len(nodes) - len(computing),
        sources=tuple(_source(after, each, before) for each in sources if graph[each].kind is not NodeKind.ATTR),
        flops=flops.flops,
        unknown_flops=flops.unknown,
        moved_bytes=sum(_moved(graph, node) for node in computing),
        estimate=estimate(graph, computing, (*after.partition.forward_nodes, *after.partition.backward_nodes)),
    )


def _source(after: PlannedRegion, name: str, before: PlannedRegion | None) -> ChainSource:
    value = after.saved.get(name)
    nbytes = sum(leaf.storage_nbytes for leaf in tensor_leaves(after.graph[name].value))
    if value is None:
        return ChainSource(after.place(name), SourceKind.FREE, nbytes, after.graph[name].kind.value)
    kind = SourceKind.SAVED if value.category is Category.ACTIVATION else SourceKind.KEPT
    made = after.made_by.get(name)
    if made is None:
        return ChainSource(after.place(name), kind, nbytes, value.reason.text)
    # A view is known by what it looks at.
    place = after.place(after.graph.nodes[made.maker].name)
    newly = before is not None and kind is SourceKind.SAVED and not before.saved_values(made)
    return ChainSource(place, kind, nbytes, value.reason.text, newly)


def estimate(graph: JointGraph, ops: Iterable[Node], step: Iterable[str]) -> Estimate | None:
    """The time of `ops`, and their share of the ops named in `step`; None on a device of unknown speed."""
    nodes = list(ops)
    device = next((kind for node in nodes if (kind := device_type(node))), "")
    if device not in SPEEDS:
        return None
    flops_per_s, bytes_per_s = SPEEDS[device]

    def seconds(node: Node) -> float:
        return max((node.flops or 0) / flops_per_s, _moved(graph, node) / bytes_per_s)

    once: dict[str, float] = {}
    whole = 0.0
    for name in step:
        if name not in once:
            once[name] = 0.0 if is_free(graph[name]) else seconds(graph[name])
        whole += once[name]
    own = sum(seconds(node) for node in nodes)
    return Estimate(own, own / whole if whole else 0.0, flops_per_s, bytes_per_s)


def _moved(graph: JointGraph, node: Node) -> int:
    moved = traffic(graph, node)
    return moved.read_bytes + moved.written_bytes
