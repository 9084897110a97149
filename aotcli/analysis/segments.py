"""Plans that rerun a stretch of the forward at a time.

What is recomputed from far back is live until its own turn in the backward comes, so a plan that saves next to nothing
can peak above one that saves more. Saving what crosses a few narrow places of the recomputed part cuts it into
segments, each recomputed right before its backward (T. Chen et al., "Training deep nets with sublinear memory cost",
arXiv 1604.06174, 2016). It costs nothing: no op is added to those that run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from aotcli.analysis.front import Choice, walk
from aotcli.analysis.tradeoff import Tradeoff

SEGMENTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


def segmented(tradeoff: Tradeoff, choice: Choice) -> Iterator[Choice]:
    """`choice` cut into ever more segments, as long as that saves something else than before."""
    rerun = sorted(choice.rerun)
    if len(rerun) < 2 * SEGMENTS[0]:
        return
    last_use = _last_uses(tradeoff, choice)
    widths = _widths(tradeoff, rerun, last_use)
    seen = {choice.saved}
    for count in SEGMENTS:
        if count * 2 > len(rerun):
            return
        kept = choice.saved | _crossing(tradeoff, rerun, last_use, _places(tradeoff, rerun, widths, count))
        if kept not in seen:
            seen.add(kept)
            yield walk(tradeoff, lambda v, kept=kept: v in kept)


def _last_uses(tradeoff: Tradeoff, choice: Choice) -> dict[int, int]:
    """The last rerun value that needs each rerun value, through views of it too."""
    last: dict[int, int] = {}
    for v in sorted(choice.rerun, reverse=True):
        # A value that cannot be saved passes its uses on to what it is made from.
        until = last.get(v, v) if tradeoff.nbytes[v] is None else v
        for u in tradeoff.inputs[v]:
            if u in choice.rerun:
                last[u] = max(last.get(u, u), until)
    return last


def _widths(tradeoff: Tradeoff, rerun: list[int], last_use: dict[int, int]) -> list[int]:
    """Bytes that cross the place before each rerun value."""
    index = {v: place for place, v in enumerate(rerun)}
    change = [0] * (len(rerun) + 1)
    for place, v in enumerate(rerun):
        nbytes = tradeoff.nbytes[v]
        if nbytes and v in last_use:
            change[place + 1] += nbytes
            change[index[last_use[v]] + 1] -= nbytes
    return list(accumulate(change[:-1]))


def _places(tradeoff: Tradeoff, rerun: list[int], widths: list[int], count: int) -> list[int]:
    """For each boundary of `count` segments of about equal bytes, the narrowest place near it."""
    made = list(accumulate(tradeoff.nbytes[v] or 0 for v in rerun))
    places: list[int] = []
    start = 1
    for number in range(1, count):
        # Half a segment to either side, and never before the last boundary.
        low, high = made[-1] * (2 * number - 1) // (2 * count), made[-1] * (2 * number + 1) // (2 * count)
        near = [place for place in range(start, len(rerun)) if low <= made[place - 1] <= high]
        if near:
            place = min(near, key=lambda place: (widths[place], abs(2 * made[place - 1] - low - high)))
            places.append(place)
            start = place + 1
    return places


def _crossing(tradeoff: Tradeoff, rerun: list[int], last_use: dict[int, int], places: list[int]) -> frozenset[int]:
    """Values made before one of the places and needed behind it."""
    starts = [rerun[place] for place in places]
    return frozenset(
        v for v in rerun if tradeoff.nbytes[v] is not None and any(v < start <= last_use.get(v, v) for start in starts)
    )
