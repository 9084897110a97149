"""Repetition among the rows of a table: runs of rows whose integers grow by a fixed step are written once.

A row is a label and integers. Rows i, i+p, i+2p, ... of a run with period p have one label, and each of their integers
is affine in the repetition; a transformer's layers are such a run, forward and backward. `fold` finds runs, `unfold`
undoes it. A folded item is a row, or a `Run`: the rows of its first repetition, and for each the steps of its integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Row = tuple[str, tuple[int, ...]]

_MOST_PERIODS = 24
_LEAST_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """`repeat` repetitions of `rows`; in repetition j, each integer is its first value plus j times its step."""

    repeat: int
    rows: tuple[Row, ...]
    steps: tuple[tuple[int, ...], ...]


def fold(rows: Sequence[Row]) -> list[Row | Run]:
    """`rows` with repetition taken out; time is linear in the rows, times the periods that are tried (24)."""
    runs = _longest_runs(rows)
    folded: list[Row | Run] = []
    start = 0
    while start < len(rows):
        period, repeat = runs[start]
        # A short run must not swallow the beginning of a long one.
        end = start + period * repeat
        if not repeat or any(_saving(*runs[i]) > _saving(period, repeat) for i in range(start + 1, end)):
            folded.append(rows[start])
            start += 1
        else:
            first, second = rows[start : start + period], rows[start + period : start + 2 * period]
            steps = tuple(_step(a, b) for (_, a), (_, b) in zip(first, second, strict=True))
            folded.append(Run(repeat, tuple(first), steps))
            start = end
    return folded


def unfold_run(run: Run) -> list[Row]:
    """The rows of a run, all repetitions."""
    rows = list(run.rows)
    for j in range(1, run.repeat):
        for (label, first), step in zip(run.rows, run.steps, strict=True):
            rows.append((label, tuple(a + j * b for a, b in zip(first, step, strict=True)) if any(step) else first))
    return rows


def _step(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([b - a for a, b in zip(first, second, strict=True)])


def _saving(period: int, repeat: int) -> int:
    """Rows saved: all repetitions but the first, and a little for what writing a run costs."""
    return period * (repeat - 1) - 1


def _longest_runs(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """For each start, the (period, repetitions) that save most, or (0, 0)."""
    best = [(0, 0)] * len(rows)
    for period in _periods(rows):
        for start, repeat in enumerate(_repeats(rows, period)):
            if repeat >= _LEAST_REPEATS and _saving(period, repeat) > max(0, _saving(*best[start])):
                best[start] = (period, repeat)
    return best


def _periods(rows: Sequence[Row]) -> list[int]:
    """Distances at which labels most often come back."""
    last: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for position, (label, _) in enumerate(rows):
        if label in last:
            distances[position - last[label]] += 1
        last[label] = position
    ranked = sorted(distances.items(), key=lambda item: (-item[1], item[0]))
    return [distance for distance, count in ranked[:_MOST_PERIODS] if count >= _LEAST_REPEATS - 1]


def _repeats(rows: Sequence[Row], period: int) -> list[int]:
    """For each start, how often rows come back with this period, with constant steps; backwards in one pass.

    `labels` counts the rows from here on whose label comes back one period later, `affine` those whose step is also
    the same in the period after that.
    """
    count = len(rows)
    repeats = [0] * count
    steps: list[tuple[int, ...] | None] = [None] * count
    labels = affine = 0
    for i in range(count - period - 1, -1, -1):
        (label, ints), (label_after, ints_after) = rows[i], rows[i + period]
        if label != label_after or len(ints) != len(ints_after):
            labels = affine = 0
            continue
        step = _step(ints, ints_after)
        steps[i] = step
        labels += 1
        affine = affine + 1 if steps[i + period] == step else 0
        repeats[i] = min(labels // period + 1, affine // period + 2)
    return repeats
