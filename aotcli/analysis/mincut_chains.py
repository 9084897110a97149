"""Nodes that must not be recomputed because of where they stand among fusible ops (torch's `solve_min_cut`, 2.13).

Used far apart: a value read both nearby and far down the forward, with something unfusible between, cannot have both
readers in one kernel; so the far readers are not recomputed. Long fusible chain: a run of fusible ops of more than a
hundred positions is cut where it is one op wide, or a residual stream would be recomputed from its very start.

Places are positions in the order of the forward.
"""

from __future__ import annotations

from heapq import heappop, heappush

from aotcli.analysis.mincut_problem import Problem, Rule

LONGEST_CHAIN = 100

_Bans = list[Rule | None]


def ban_used_far_apart(problem: Problem, bans: _Bans, allowed: list[bool]) -> None:
    """Add the bans of the first rule to `bans`, given the ones already there."""
    order, users_of = problem.roles.forward_order, problem.graph.users_of
    fusible = problem.fusion.fusible
    broken_at = first_unfusible(problem)
    for used in range(len(order)):
        users = [user for user in users_of[used] if order[user] >= 0] if order[used] >= 0 else ()
        if len(users) < 2:
            continue
        first = min([broken_at[user] for user in users])
        for user in users:
            far = order[user] > first and allowed[user] and bans[user] is None and fusible(used, user)
            if far and problem.applies(user, Rule.FAR_APART):
                bans[user] = Rule.FAR_APART


def first_unfusible(problem: Problem) -> list[int]:
    """For each node the first place in the forward that an unfusible edge leads to, from the node or from what is
    reached from it by fusible edges; beyond the end where there is none.

    torch searches anew from the readers of every value. The search meets places in order, so what it finds is a minimum
    over all such paths, and that obeys a recurrence from each node to its readers.
    """
    order, users_of = problem.roles.forward_order, problem.graph.users_of
    fusible = problem.fusion.fusible
    found = [len(order)] * len(order)
    for node in range(len(order) - 1, -1, -1):
        if order[node] < 0:
            continue
        for user in users_of[node]:
            if order[user] >= 0:
                found[node] = min(found[node], found[user] if fusible(node, user) else order[user])
    return found


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
            if place > start + LONGEST_CHAIN and not heap:
                if allowed[node] and problem.applies(node, Rule.LONG_CHAIN):
                    bans[node] = Rule.LONG_CHAIN
                break
            for user in users_of[node]:
                if order[user] >= 0 and bans[user] is None and fusible(node, user):
                    heappush(heap, order[user])
