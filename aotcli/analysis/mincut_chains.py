"""Nodes that must not be recomputed because of where they stand among fusible ops (torch's `solve_min_cut`, 2.13).

Used far apart: a value read both nearby and far down the forward, with something unfusible between, cannot have both
readers in one kernel; so the far readers are not recomputed. Long fusible chain: a run of fusible ops of more than a
hundred positions is cut where it is one op wide, or a residual stream would be recomputed from its very start.

Both walk the forward in its order with a heap of integers (positions in that order).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from aotcli.analysis.mincut_problem import Problem, Rule

_LONGEST_CHAIN = 100

_Bans = list[Rule | None]


def ban_used_far_apart(problem: Problem, bans: _Bans, allowed: list[bool]) -> None:
    """Add the bans of the first rule to `bans`, given the ones already there."""
    order, users_of = problem.roles.forward_order, problem.graph.users_of
    fusible = problem.fusion.fusible
    for used in range(len(order)):
        users = [user for user in users_of[used] if order[user] >= 0] if order[used] >= 0 else ()
        if len(users) < 2:
            continue
        candidates = [user for user in users if allowed[user] and bans[user] is None and fusible(used, user)]
        if not candidates:
            continue
        farthest = max([order[user] for user in candidates])
        if farthest == min([order[user] for user in users]):
            continue
        first = _first_unfusible(problem, users, farthest)
        for user in candidates:
            if order[user] > first and problem.applies(user, Rule.FAR_APART):
                bans[user] = Rule.FAR_APART


def _first_unfusible(problem: Problem, users: list[int], limit: int) -> int:
    """Place in the forward of the first node that an unfusible edge leads to from `users`; `limit` if none is before.

    Heap entries are twice the place, plus one if the edge fuses: for one place the unfusible edge comes first.
    """
    order, users_of = problem.roles.forward_order, problem.graph.users_of
    fusible = problem.fusion.fusible
    node_at = {2 * order[user] + 1: user for user in users if order[user] < limit}
    heap = list(node_at)
    heapify(heap)
    while heap:
        entry = heappop(heap)
        if not entry & 1:
            return entry >> 1
        node = node_at[entry]
        for user in users_of[node]:
            if 0 <= order[user] < limit:
                reached = 2 * order[user] + fusible(node, user)
                if reached not in node_at:
                    node_at[reached] = user
                    heappush(heap, reached)
    return limit


def ban_long_chains(problem: Problem, bans: _Bans, allowed: list[bool]) -> None:
    """Add the bans of the second rule to `bans`, given the ones already there."""
    order, users_of = problem.roles.forward_order, problem.graph.users_of
    fusible = problem.fusion.fusible
    forward = [position for position, place in enumerate(order) if place >= 0]
    visited = [False] * len(forward)
    for start in range(len(forward)):
        # The heap may hold a place twice; torch's does, and "one op wide" means that it holds nothing else.
        heap = [start]
        while heap:
            place = heappop(heap)
            if visited[place]:
                continue
            visited[place] = True
            node = forward[place]
            if place > start + _LONGEST_CHAIN and not heap:
                if allowed[node] and problem.applies(node, Rule.LONG_CHAIN):
                    bans[node] = Rule.LONG_CHAIN
                break
            for user in users_of[node]:
                if order[user] >= 0 and bans[user] is None and fusible(node, user):
                    heappush(heap, order[user])
