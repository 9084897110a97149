"""The whole front of saved bytes against the cost of recomputing, with a proof of how far a plan is from the best.

With a multiplier on memory the trade-off of `tradeoff.py` is one minimum cut:

    source -> v_in   capacity cost_v + m * state_v   (v runs again)     infinite where it must not
    v_in   -> v_out  capacity m * nbytes_v           (v is saved)       infinite where it cannot be
    u_out  -> v_in   infinite                        v may run again only where its inputs are available
    v_out  -> sink   infinite                        where the backward reads v

All multipliers give the lower convex hull of what any plan can reach: between two neighbouring corners no plan lies
below the straight line that joins them (Lagrangian relaxation; H. Everett, Operations Research 11, 1963). Corners are
found from both ends inwards (M. Eisner and D. Severance, J. ACM 23, 1976): the slope of a line that joins two known
corners is a multiplier, and the cut there is either a new corner or the proof that there is none between. A multiplier
is a ratio of integers, so are capacities, and nothing is rounded.

What lies between two corners is mixed from them in `mixing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from aotcli.analysis.flow import FlowNetwork, minimum_cut
from aotcli.analysis.tradeoff import Tradeoff


@dataclass(frozen=True, slots=True)
class Choice:
    """One plan: the values that are saved and those that run again, by number. Bytes include random states."""

    saved: frozenset[int]
    rerun: frozenset[int]
    nbytes: int
    cost: int


@dataclass(frozen=True, slots=True)
class Front:
    """Corners of the hull, from the most bytes to the fewest."""

    corners: tuple[Choice, ...]

    def least_cost(self, budget_bytes: int) -> Fraction | None:
        """What any plan within the budget costs at least; None where no plan is within."""
        if budget_bytes >= self.corners[0].nbytes:
            return Fraction(self.corners[0].cost)
        for more, less in zip(self.corners, self.corners[1:], strict=False):
            if less.nbytes <= budget_bytes:
                slope = Fraction(less.cost - more.cost, more.nbytes - less.nbytes)
                return more.cost + slope * (more.nbytes - budget_bytes)
        return None

    def least_bytes(self, cost: int) -> Fraction | None:
        """What any plan of at most this cost saves at least; None where no plan costs so little."""
        if cost < self.corners[0].cost:
            return None
        for more, less in zip(self.corners, self.corners[1:], strict=False):
            if less.cost > cost:
                slope = Fraction(more.nbytes - less.nbytes, less.cost - more.cost)
                return more.nbytes - slope * (cost - more.cost)
        return Fraction(self.corners[-1].nbytes)


def find_front(tradeoff: Tradeoff) -> Front:
    """All corners of the hull. Raises PlanImpossibleError where there is no plan."""
    most = choose(tradeoff, cost_factor=1 + _total_bytes(tradeoff), bytes_factor=1)
    least = choose(tradeoff, cost_factor=1, bytes_factor=1 + sum(cost or 0 for cost in tradeoff.cost))
    return Front(tuple(_between(tradeoff, most, least)))


def _between(tradeoff: Tradeoff, most: Choice, least: Choice) -> Iterable[Choice]:
    """Corners from `most` to `least`, both included, in order."""
    if most.nbytes <= least.nbytes:
        yield most
        return
    pending = [(most, least)]
    yield most
    while pending:
        more, less = pending.pop()
        middle = _corner_between(tradeoff, more, less)
        if middle is None:
            yield less
        else:
            pending += [(middle, less), (more, middle)]


def _corner_between(tradeoff: Tradeoff, more: Choice, less: Choice) -> Choice | None:
    """A corner below the line that joins two; None where there is none."""
    in_bytes, in_cost = more.nbytes - less.nbytes, less.cost - more.cost
    found = choose(tradeoff, cost_factor=in_bytes, bytes_factor=in_cost)
    below = found.cost * in_bytes + found.nbytes * in_cost < more.cost * in_bytes + more.nbytes * in_cost
    return found if below else None


def _total_bytes(tradeoff: Tradeoff) -> int:
    return sum(each or 0 for each in tradeoff.nbytes) + sum(tradeoff.state_bytes)


def choose(tradeoff: Tradeoff, *, cost_factor: int, bytes_factor: int) -> Choice:
    """The plan with the least cost_factor * cost + bytes_factor * bytes; of several, the one that reruns least."""
    return choose_by(tradeoff, lambda _v: (cost_factor, bytes_factor))


def choose_by(tradeoff: Tradeoff, factors: Callable[[int], tuple[int, int]]) -> Choice:
    """As `choose`, with a cost factor and a bytes factor for each value."""
    count = len(tradeoff.positions)
    source, sink = 2 * count, 2 * count + 1
    network = FlowNetwork(2 * count + 2)
    passed_on = tradeoff.passed_on
    for v, (cost, nbytes) in enumerate(zip(tradeoff.cost, tradeoff.nbytes, strict=True)):
        if passed_on[v] is not None:
            continue  # free and never saved: whoever reads it reads what it is made from
        cost_factor, bytes_factor = factors(v)
        # What must not run again enters from the source itself, what cannot be saved is one point: the same cuts.
        entry = source if cost is None else 2 * v
        leave = entry if nbytes is None else 2 * v + 1
        if cost is not None:
            network.add_arc(source, entry, cost_factor * cost + bytes_factor * tradeoff.state_bytes[v])
            for u in tradeoff.reads[v]:
                network.add_arc(_leave(tradeoff, u, source), entry, None)
        if nbytes is not None:
            network.add_arc(entry, leave, bytes_factor * nbytes)
    for v in tradeoff.read_at_last:
        network.add_arc(_leave(tradeoff, v, source), sink, None)
    side = minimum_cut(network, source, sink).sink_side
    return walk(tradeoff, lambda v: tradeoff.cost[v] is None or not side[2 * v])


def _leave(tradeoff: Tradeoff, v: int, source: int) -> int:
    """The point at which a value is available."""
    if tradeoff.nbytes[v] is not None:
        return 2 * v + 1
    return source if tradeoff.cost[v] is None else 2 * v


def walk(tradeoff: Tradeoff, saves: Callable[[int], bool]) -> Choice:
    """The plan that saves what `saves` says and reruns the rest, as far as the backward needs it.

    What cannot be saved runs again, and what must not run again is saved, whatever `saves` says.
    """
    pending = [v for v, read in enumerate(tradeoff.read) if read]
    seen = set(pending)
    saved: set[int] = set()
    rerun: set[int] = set()
    while pending:
        v = pending.pop()
        if tradeoff.cost[v] is None or (tradeoff.nbytes[v] is not None and saves(v)):
            saved.add(v)
            continue
        rerun.add(v)
        for u in tradeoff.inputs[v]:
            if u not in seen:
                seen.add(u)
                pending.append(u)
    return Choice(
        frozenset(saved),
        frozenset(rerun),
        sum(tradeoff.nbytes[v] or 0 for v in saved) + sum(tradeoff.state_bytes[v] for v in rerun),
        sum(tradeoff.cost[v] or 0 for v in rerun),
    )
