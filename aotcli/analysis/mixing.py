"""Plans between two corners of the front, which meet a budget that no corner meets closely.

Three ways, the best of which is taken:

* Where two neighbouring corners differ, they differ in parts of the network that do not touch (twelve equal layers,
  say). Each part may be taken from either plan, at the same cost for each byte, so such mixtures lie on the hull.
* Where the parts hang together, the graph is crossed at one place: one minimum cut in which memory is dear before the
  place and cheap behind it, or the other way round. The place is found by bisection.
* What the budget then leaves is spent on the values that spare most for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from aotcli.analysis.front import Choice, Front, choose_by, walk
from aotcli.analysis.tradeoff import Tradeoff

_GOOD_ENOUGH = Fraction(1, 2000)  # a corner this near the bound is taken as it is
_POLISHED = 3  # plans that the last way is tried on
_POLISHING_STEPS = 24  # values that the last way considers at most, each for one walk over the graph


def fill(tradeoff: Tradeoff, front: Front, budget_bytes: int) -> Choice | None:
    """A plan within the budget, of the least cost that mixing neighbouring corners finds; None where no plan is."""
    corners = front.corners
    if corners[-1].nbytes > budget_bytes:
        return None
    at = next(number for number, corner in enumerate(corners) if corner.nbytes <= budget_bytes)
    bound = front.least_cost(budget_bytes)
    if bound is None or corners[at].cost <= bound * (1 + _GOOD_ENOUGH):
        return corners[at]
    more, less = corners[at - 1], corners[at]
    candidates = [less, *_by_parts(tradeoff, more, less, budget_bytes)]
    candidates += _crossed(tradeoff, _multipliers(corners, at), budget_bytes)
    within = sorted({each for each in candidates if each.nbytes <= budget_bytes}, key=_rank)
    return min([_polished(tradeoff, each, budget_bytes) for each in within[:_POLISHED]], key=_rank)


def _rank(choice: Choice) -> tuple[int, int, int]:
    return choice.cost, choice.nbytes, len(choice.rerun)


def _by_parts(tradeoff: Tradeoff, more: Choice, less: Choice, budget_bytes: int) -> Iterable[Choice]:
    """`more` with as many parts taken from `less` as the budget asks for: the largest first while they are needed
    whole, then the smallest that is enough."""
    parts = sorted(_parts(tradeoff, more, less), key=lambda part: (-_gain(tradeoff, more, less, part), min(part)))
    gains = [_gain(tradeoff, more, less, part) for part in parts]
    taken: set[int] = set()
    needed = more.nbytes - budget_bytes
    for number, gain in enumerate(gains):
        if 0 < gain <= needed:
            taken.add(number)
            needed -= gain
    enough = [number for number, gain in enumerate(gains) if number not in taken and gain >= needed > 0]
    if enough:
        taken.add(enough[-1])
    flipped = {v for number in taken for v in parts[number]}
    yield walk(tradeoff, lambda v: v in less.saved if v in flipped else v in more.saved)


def _gain(tradeoff: Tradeoff, more: Choice, less: Choice, part: Sequence[int]) -> int:
    """Bytes that taking a part from `less` frees."""
    own = sum(tradeoff.nbytes[v] or 0 for v in part if v in more.saved)
    other = sum(tradeoff.nbytes[v] or 0 for v in part if v in less.saved)
    states = sum(tradeoff.state_bytes[v] * ((v in less.rerun) - (v in more.rerun)) for v in part)
    return own - other - states


def _parts(tradeoff: Tradeoff, more: Choice, less: Choice) -> list[list[int]]:
    """The values that two plans treat differently, in connected groups."""
    differing = {v for v in range(len(tradeoff.positions)) if _fate(more, v) != _fate(less, v)}
    leader = {v: v for v in differing}

    def find(v: int) -> int:
        while leader[v] != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for v in sorted(differing):
        for u in tradeoff.inputs[v]:
            if u in differing:
                leader[find(u)] = find(v)
    groups: dict[int, list[int]] = {}
    for v in sorted(differing):
        groups.setdefault(find(v), []).append(v)
    return list(groups.values())


def _fate(choice: Choice, v: int) -> int:
    return 1 if v in choice.saved else 2 if v in choice.rerun else 0


def _multipliers(corners: Sequence[Choice], at: int) -> tuple[Fraction, Fraction]:
    """Costs of a byte at which the corner before `at`, and that at `at`, are best: half-way to the next corners."""

    def slope(number: int) -> Fraction:
        more, less = corners[number - 1], corners[number]
        return Fraction(less.cost - more.cost, more.nbytes - less.nbytes)

    own = slope(at)
    cheap = (own + (slope(at - 1) if at > 1 else 0)) / 2
    dear = (own + slope(at + 1)) / 2 if at + 1 < len(corners) else own * 2 + 1
    return cheap, dear


def _crossed(tradeoff: Tradeoff, multipliers: tuple[Fraction, Fraction], budget_bytes: int) -> Iterator[Choice]:
    """Plans with memory dear on one side of a place and cheap on the other: for each side the fewest values on the dear
    side with which the budget is met."""
    cheap, dear = multipliers
    scale = cheap.denominator * dear.denominator
    cheap_factors, dear_factors = (scale, int(cheap * scale)), (scale, int(dear * scale))
    count = len(tradeoff.positions)

    def first_dear(place: int) -> Choice:
        return choose_by(tradeoff, lambda v: dear_factors if v < place else cheap_factors)

    def last_dear(place: int) -> Choice:
        return choose_by(tradeoff, lambda v: dear_factors if v >= count - place else cheap_factors)

    for crossed in (first_dear, last_dear):
        yield from _bisected(crossed, count, budget_bytes)


def _bisected(crossed: Callable[[int], Choice], most: int, budget_bytes: int) -> Iterator[Choice]:
    """Choices on the way to the smallest place that meets the budget, where bytes fall as the place grows."""
    low, high = 0, most
    while high - low > 1:
        place = (low + high) // 2
        choice = crossed(place)
        if choice.nbytes <= budget_bytes:
            high = place
            yield choice
        else:
            low = place


def _polished(tradeoff: Tradeoff, choice: Choice, budget_bytes: int) -> Choice:
    """The choice with the budget's rest spent on saving what spares most."""
    for _ in range(_POLISHING_STEPS):
        rest = budget_bytes - choice.nbytes
        rerun = [v for v in choice.rerun if tradeoff.nbytes[v] is not None and (tradeoff.nbytes[v] or 0) <= rest]
        # What its own op costs is the least that saving a value spares; the dearest are looked at.
        rerun.sort(key=lambda v: (-(tradeoff.cost[v] or 0), v))
        saved = choice.saved
        found = [walk(tradeoff, lambda v, own=own, saved=saved: v == own or v in saved) for own in rerun[:8]]
        better = [each for each in found if each.nbytes <= budget_bytes and _rank(each) < _rank(choice)]
        if not better:
            return choice
        choice = min(better, key=_rank)
    return choice
