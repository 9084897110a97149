"""Minimum s-t cut of a directed network with integer capacities.

Problem: given arcs (u, v) with capacities c >= 0, a source s and a sink t, find S with s in S and t not in S that
minimises the capacity of the arcs that leave S:

    min over S   sum of c(u, v) over arcs with u in S and v not in S

By the max-flow min-cut theorem (Ford and Fulkerson 1956) this is the value of the largest flow from s to t, and the cut
is read off the residual network of such a flow.

Algorithm: Dinic's blocking flows (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in a network with
power estimation", Soviet Math. Doklady 11, 1970). `_distances_to` is its layering, taken from the sink so that the
walk runs into few dead ends; `_augment_along_layers` finds one blocking flow. Both are loops over flat lists of
integers: no objects, no recursion, no floats. Arc 2k is an arc as added, arc 2k+1 its reverse; `head` and `residual`
are indexed by arc.

Among cuts of equal capacity this returns **the one nearest the sink**: the part on the sink's side is exactly what can
still reach the sink in the residual network, which every other minimum cut's sink side contains. It is unique, so the
answer does not depend on the order of arcs. (For partitioning it is the cheapest tie: the fewest nodes to recompute.)

Infinite capacity is `None` on the way in. Inside it is the sum of all finite capacities plus one, which no finite cut
reaches; Python's integers cannot overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.errors import VerificationError


class FlowNetwork:
    """A network under construction: nodes are 0 .. size-1."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.tail: list[int] = []
        self.head: list[int] = []
        self.capacity: list[int | None] = []

    def add_arc(self, tail: int, head: int, capacity: int | None) -> None:
        """Add an arc; `capacity` is a non-negative integer, or None for infinite."""
        self.tail.append(tail)
        self.head.append(head)
        self.capacity.append(capacity)


@dataclass(frozen=True, slots=True)
class MinimumCut:
    """`value` is the capacity of the cut; `sink_side[v]` says whether node v is on the sink's side."""

    value: int
    sink_side: tuple[bool, ...]


def minimum_cut(network: FlowNetwork, source: int, sink: int) -> MinimumCut:
    """The minimum cut nearest the sink.

    Raises VerificationError where a path of infinite capacity joins source and sink: callers look for such a path first
    (`infinite_path`), because only they can say what it means.
    """
    infinity = 1 + sum(each for each in network.capacity if each is not None)
    head: list[int] = []
    residual: list[int] = []
    arcs_from: list[list[int]] = [[] for _ in range(network.size)]
    for tail, tip, capacity in zip(network.tail, network.head, network.capacity, strict=True):
        arcs_from[tail].append(len(head))
        arcs_from[tip].append(len(head) + 1)
        head += (tip, tail)
        residual += (infinity if capacity is None else capacity, 0)
    value = 0
    while True:
        distance = _distances_to(sink, source, head, residual, arcs_from)
        if distance[source] < 0:
            return MinimumCut(value, tuple(each >= 0 for each in distance))
        value += _augment_along_layers(source, sink, head, residual, arcs_from, distance)
        if value >= infinity:
            raise VerificationError("a path of infinite capacity joins source and sink of a flow network")


def infinite_path(network: FlowNetwork, source: int, sink: int) -> list[int] | None:
    """Nodes of a shortest path of infinite arcs from source to sink, or None."""
    arcs_from: list[list[int]] = [[] for _ in range(network.size)]
    for tail, tip, capacity in zip(network.tail, network.head, network.capacity, strict=True):
        if capacity is None:
            arcs_from[tail].append(tip)
    came_from = {source: source}
    queue = [source]
    for node in queue:
        for tip in arcs_from[node]:
            if tip not in came_from:
                came_from[tip] = node
                queue.append(tip)
    if sink not in came_from:
        return None
    path = [sink]
    while path[-1] != source:
        path.append(came_from[path[-1]])
    return path[::-1]


def _distances_to(
    sink: int, source: int, head: list[int], residual: list[int], arcs_from: list[list[int]]
) -> list[int]:
    """Residual arcs between each node and the sink; -1 where the sink cannot be reached, or only from farther away than
    the source."""
    distance = [-1] * len(arcs_from)
    distance[sink] = 0
    queue = [sink]
    for node in queue:
        if node == source:
            break  # no shortest path from the source leads through what is as far away
        layer = distance[node] + 1
        for arc in arcs_from[node]:
            tail = head[arc]
            if distance[tail] < 0 and residual[arc ^ 1]:
                distance[tail] = layer
                queue.append(tail)
    return distance


def _augment_along_layers(
    source: int, sink: int, head: list[int], residual: list[int], arcs_from: list[list[int]], distance: list[int]
) -> int:
    """Send flow along arcs that go one layer nearer the sink until every such path is blocked; returns the amount."""
    pointer = [0] * len(arcs_from)
    path: list[int] = []
    node = source
    total = 0
    while True:
        if node == sink:
            amount = min([residual[arc] for arc in path])
            total += amount
            for arc in path:
                residual[arc] -= amount
                residual[arc ^ 1] += amount
            blocked = next(i for i, arc in enumerate(path) if not residual[arc])
            node = head[path[blocked] ^ 1]
            del path[blocked:]
        arcs = arcs_from[node]
        layer = distance[node] - 1
        position = pointer[node]
        end = len(arcs)
        while position < end:
            arc = arcs[position]
            if distance[head[arc]] == layer and residual[arc]:
                break
            position += 1
        pointer[node] = position
        if position < end:
            path.append(arcs[position])
            node = head[arcs[position]]
        elif path:
            node = head[path.pop() ^ 1]
            pointer[node] += 1
        else:
            return total
