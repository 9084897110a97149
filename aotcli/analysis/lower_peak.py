"""Orders of the backward other than PyTorch's, that may need less memory at its peak.

PyTorch brings recomputed ops down to the first op that needs them, a cluster at a time and each cluster in the order of
the forward. Where the forward went breadth first, results then wait side by side; where a gradient op would free more
than it makes, it waits for its turn. Both are candidates here, and the timeline decides (aotcli/analysis/assemble.py).
The order of ops with effects, random ops and writes to inputs is never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aotcli.ir.joint import JointGraph, Tag
from aotcli.ir.tensor import tensor_leaves

ORDERS = ("depth-first", "free-early", "depth-first, free-early")
_PINNED = frozenset({Tag.RANDOM, Tag.IMPURE, Tag.EFFECTFUL, Tag.MUTABLE, Tag.COLLECTIVE, Tag.WITH_EFFECTS})


def reordered(
    graph: JointGraph, order: str, ops: Sequence[int], inputs_of: Sequence[Sequence[int]], starts: Collection[int]
) -> list[int]:
    """`ops`, positions of the backward's nodes in PyTorch's order, in `order` (one of ORDERS).

    `starts` are the tangents. Where `order` would change the sequence of ops with effects, `ops` is kept.
    """
    fresh = _fresh_bytes(graph, ops, inputs_of)
    found = list(ops)
    if "depth-first" in order:
        found = _depth_first(found, inputs_of, starts, fresh)
    if "free-early" in order:
        found = _free_early(found, inputs_of, fresh)
    pinned = {op for op in ops if graph.nodes[op].tags & _PINNED}
    if [op for op in found if op in pinned] != [op for op in ops if op in pinned]:
        return list(ops)
    return found


def _fresh_bytes(graph: JointGraph, ops: Sequence[int], inputs_of: Sequence[Sequence[int]]) -> dict[int, int]:
    """Bytes that each op allocates: what it returns, less what is a view of its arguments."""
    fresh: dict[int, int] = {}
    for op in ops:
        seen = {leaf.storage for source in inputs_of[op] for leaf in tensor_leaves(graph.nodes[source].value)}
        leaves = {leaf.storage: leaf.storage_nbytes for leaf in tensor_leaves(graph.nodes[op].value)}
        fresh[op] = sum(nbytes for storage, nbytes in leaves.items() if storage not in seen)
    return fresh


def _depth_first(
    ops: Sequence[int], inputs_of: Sequence[Sequence[int]], starts: Collection[int], fresh: dict[int, int]
) -> list[int]:
    """Gradient ops in their order; what each needs is computed right before it, the heaviest branch first, each branch
    to its end (after Sethi and Ullman, 1970, who order the registers of an expression so)."""
    heaviest: dict[int, int] = {}
    gradient: set[int] = set(starts)
    for op in ops:
        around = fresh[op] + sum(fresh.get(source, 0) for source in inputs_of[op])
        heaviest[op] = max([around, *(heaviest.get(source, 0) for source in inputs_of[op])])
        if not gradient.isdisjoint(inputs_of[op]):
            gradient.add(op)
    waiting = set(ops)
    found: list[int] = []
    for root in [*(op for op in ops if op in gradient), *ops]:
        stack = [(root, False)]
        while stack:
            op, ready = stack.pop()
            if ready:
                found.append(op)
            elif op in waiting:
                waiting.discard(op)
                stack.append((op, True))
                stack.extend((each, False) for each in sorted(inputs_of[op], key=lambda each: heaviest.get(each, 0)))
    return found


def _free_early(ops: Sequence[int], inputs_of: Sequence[Sequence[int]], fresh: dict[int, int]) -> list[int]:
    """Each op that frees more than it allocates moved up to just behind the last of its arguments."""
    last_reader: dict[int, int] = {}
    for op in ops:
        for source in inputs_of[op]:
            last_reader[source] = op
    # A moved op sorts behind its last argument and before what stood behind that: places are compared as tuples.
    place: dict[int, tuple[int, ...]] = {}
    for rank, op in enumerate(ops):
        freed = sum(fresh.get(source, 0) for source in inputs_of[op] if last_reader[source] == op)
        computed = [place[source] for source in inputs_of[op] if source in place]
        place[op] = (*max(computed), rank) if computed and freed > fresh[op] else (rank,)
    return sorted(ops, key=place.__getitem__)
