"""Who in the backward needs a value: the ops of the backward proper that read it, straight or through views and ops
that run again."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.explain_region import PlannedRegion, is_free
from aotcli.ir.explanation import Place, Reader

_LONGEST_TAIL = 6  # views between a gradient op and what the backward returns


def readers_of(region: PlannedRegion, names: Sequence[str]) -> tuple[Reader, ...]:
    """The readers of values by name, each once, by the shortest way, in the order in which they run."""
    way: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    queue = list(names)
    found: dict[str, Reader] = {}
    for name in queue:
        for user in region.backward_users.get(name, ()):
            if user in way or user in found:
                continue
            node = region.backward_half[user]
            if user in region.recomputed or is_free(node):
                way[user] = (*way[name], user)
                queue.append(user)
            else:
                via = tuple(region.place(each) for each in way[name])
                found[user] = Reader(region.place(user), via, _gradient_of(region, user))
    order = {name: place for place, name in enumerate(region.backward_half)}
    readers = sorted(found.values(), key=lambda reader: order[reader.place.name])
    return tuple(readers) or _returned(region, names)


def _returned(region: PlannedRegion, names: Sequence[str]) -> tuple[Reader, ...]:
    """Values that the backward hands on as they are."""
    gradients = region.gradients
    return tuple(Reader(region.place(name), (), gradients[name]) for name in names if name in gradients)


def _gradient_of(region: PlannedRegion, name: str) -> str | None:
    """What the result of a backward op is the gradient of, seen through views."""
    gradients = region.gradients
    for _ in range(_LONGEST_TAIL):
        if name in gradients:
            return gradients[name]
        views = [user for user in region.backward_users.get(name, ()) if is_free(region.backward_half[user])]
        if len(views) != 1:
            return None
        name = views[0]
    return None


def leads_to(region: PlannedRegion, names: Sequence[str]) -> tuple[Place, ...]:
    """What the backward is given in place of values that stay in the forward: the saved values computed from them, the
    nearest first. Empty where nothing of them reaches the backward."""
    graph = region.graph
    queue = [graph.index[name] for name in names]
    seen = set(queue)
    found: list[Place] = []
    for position in queue:
        for user in graph.users_of[position]:
            name = region.standing(graph.nodes[user].name)
            standing = graph.index[name]
            if standing in seen or name not in region.forward:
                continue
            seen.add(standing)
            if name in region.saved:
                found.append(region.place(name))
            else:
                queue.append(standing)
    return tuple(found)
