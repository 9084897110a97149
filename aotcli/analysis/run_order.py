"""The order in which the nodes of a half run, as PyTorch's partitioners leave it.

Both passes work on positions in the joint graph. They reproduce what `reordering_to_mimic_autograd_engine` and
`raise_getitems` (torch._functorch) do to a module, so that a plan's timeline is that of the code that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def mimic_autograd(
    ops: Sequence[int], inputs_of: Sequence[Sequence[int]], starts: Collection[int], copies: Collection[int]
) -> list[int]:
    """Recomputed nodes moved down to just before the first node that needs them.

    `ops` are the backward's nodes in graph order. From the first node that reads one of `starts` (the tangents), nodes
    keep their order, each preceded by what it needs and has not run yet. Of what stands before that node, only what is
    needed stays, and writes to inputs (`copies`), which come first. Without such a node the order is kept.
    """
    first = next((i for i, op in enumerate(ops) if any(source in starts for source in inputs_of[op])), None)
    if first is None:
        return list(ops)
    waiting = set(ops)
    ordered: list[int] = []

    def place(op: int) -> None:
        needed: list[int] = []
        stack = [op]
        while stack:
            current = stack.pop()
            if current in waiting:
                waiting.discard(current)
                needed.append(current)
                stack.extend(inputs_of[current])
        if len(needed) > 1:
            needed.sort()
        ordered.extend(needed)

    for op in ops[:first]:
        if op in copies:
            place(op)
    for op in ops[first:]:
        if op in waiting:
            place(op)
    return ordered


def raise_getitems(
    inputs: Sequence[int], ops: Sequence[int], inputs_of: Sequence[Sequence[int]], getitems: Collection[int]
) -> list[int]:
    """Each getitem moved to just behind the value that it takes apart, so that the rest of the tuple dies early.

    A getitem that was itself taken apart keeps its distance: parents are served in order, once, and what hangs below a
    moved getitem does not move along.
    """
    moving = [op for op in ops if op in getitems and len(inputs_of[op]) == 1]
    if not moving:
        return list(ops)
    chain = [*inputs, *ops]
    following = dict(zip(chain, [*chain[1:], -1], strict=True))
    preceding = dict(zip(chain, [-1, *chain[:-1]], strict=True))
    for op in reversed(moving):
        parent = inputs_of[op][0]
        if following[parent] == op:
            continue
        before, after = preceding[op], following[op]
        following[before] = after
        preceding[after] = before
        behind = following[parent]
        following[parent], preceding[op] = op, parent
        following[op], preceding[behind] = behind, op
    return _walk(chain, preceding, set(ops))


def _walk(chain: Sequence[int], preceding: dict[int, int], wanted: set[int]) -> list[int]:
    """The chain read from its end; -1 stands on both sides of it."""
    found: list[int] = []
    current = preceding[-1] if -1 in preceding else chain[-1]
    while current != -1:
        if current in wanted:
            found.append(current)
        current = preceding[current]
    found.reverse()
    return found
