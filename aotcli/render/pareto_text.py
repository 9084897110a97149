"""A front as a plot of characters and a table: each plan with what it saves, costs and needs at its peak."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.pareto import ParetoFront, ParetoPoint, PointKind
from aotcli.ir.trace import Trace
from aotcli.render.header import header_lines
from aotcli.render.page import Column, Page, plain, table
from aotcli.render.partition_text import labelled
from aotcli.render.units import bytes_text, magnitude_text, percent_text

PLOT_ROWS = 14
_MARKS = {PointKind.CORNER: "●", PointKind.BETWEEN: "○"}
_ASCII_MARKS = {PointKind.CORNER: "*", PointKind.BETWEEN: "o"}
_SAME = 0.0005  # points nearer than this share of the axes stand as one


def render_pareto_text(
    trace: Trace, front: ParetoFront, page: Page, *, target: str, quiet: bool = False, cached: bool = False
) -> str:
    """Header, plot, table, and how to take a plan."""
    points = distinct_points(front)
    lines = [*header_lines(page, trace, cached=cached), ""]
    region = f" of region {front.region + 1}" if len(trace.regions) > 1 else ""
    lines += [page.style(f"Saved bytes against recomputing{region}", "bold") + f"  {plain(front.pricing)}", ""]
    lines += [*_plot(page, front, points), "", *_table(page, front, points)]
    if front.unknown:
        lines += ["", *labelled(page, "Note", f"no formula is known for the FLOPs of {', '.join(front.unknown[:4])}")]
    if not quiet and (middle := _example(points)) is not None:
        words = f"aotcli partition {target} --strategy {middle.label}"
        lines += ["", "Take one:  " + page.style(words, "cyan")]
    return page.finish(lines)


def distinct_points(front: ParetoFront) -> list[ParetoPoint]:
    """The points without those that no plot could tell from the one before; strategies always stay."""
    most = max((point.nbytes for point in front.points), default=0) or 1
    dearest = max((point.cost for point in front.points), default=0) or 1
    kept: list[ParetoPoint] = []
    for point in front.points:
        same = any(
            other.kind is not PointKind.STRATEGY
            and abs(other.nbytes - point.nbytes) < _SAME * most
            and abs(other.cost - point.cost) < _SAME * dearest
            for other in kept
        )
        if point.kind is PointKind.STRATEGY or not same:
            kept.append(point)
    return kept


def cost_text(cost: float, unit: str) -> str:
    """Picoseconds as a time, FLOPs as FLOPs."""
    if unit == "FLOP":
        return magnitude_text(cost, "FLOP")
    if cost < 1e6:
        return "<1 µs" if cost else "0"
    if cost < 1e9:
        return f"{cost / 1e6:.3g} µs"
    if cost < 1e12:
        return f"{cost / 1e9:.3g} ms" if cost < 1e11 else f"{cost / 1e9:.0f} ms"
    return f"{cost / 1e12:.2f} s"


def _letters(points: Sequence[ParetoPoint]) -> dict[str, str]:
    """A mark for each strategy that is shown for comparison."""
    labels = [point.label for point in points if point.kind is PointKind.STRATEGY]
    return {label: chr(ord("a") + number) if number < 26 else "+" for number, label in enumerate(labels)}


def _mark(page: Page, point: ParetoPoint, letters: dict[str, str]) -> str:
    if point.kind is PointKind.STRATEGY:
        return letters[point.label]
    return (_MARKS if page.unicode else _ASCII_MARKS)[point.kind]


def _plot(page: Page, front: ParetoFront, points: Sequence[ParetoPoint]) -> list[str]:
    """Cost upwards, bytes to the right; the axes are linear and begin at 0."""
    columns = min(page.width, 110) - 12
    most = max((point.nbytes for point in points), default=0) or 1
    dearest = max((point.cost for point in points), default=0) or 1
    letters = _letters(points)
    cells = [[" "] * columns for _ in range(PLOT_ROWS)]
    # Corners last: they are what the plot is about.
    for point in sorted(points, key=lambda each: (each.kind is PointKind.CORNER, each.kind is PointKind.BETWEEN)):
        row = PLOT_ROWS - 1 - round(point.cost / dearest * (PLOT_ROWS - 1))
        cells[row][round(point.nbytes / most * (columns - 1))] = _mark(page, point, letters)
    wall, floor, corner = ("│", "─", "└") if page.unicode else ("|", "-", "+")
    lines: list[str] = []
    for row, line in enumerate(cells):
        label = cost_text(dearest, front.unit) if row == 0 else "0" if row == PLOT_ROWS - 1 else ""
        lines.append(f"{label:>10} {wall}" + "".join(line))
    lines.append(" " * 11 + corner + floor * columns)
    right = bytes_text(most)
    lines.append(" " * 12 + "0" + " saved".ljust(columns - 1 - len(right)) + right)
    return lines


def _table(page: Page, front: ParetoFront, points: Sequence[ParetoPoint]) -> list[str]:
    letters = _letters(points)
    columns = [
        Column(""),
        Column("saved", right=True),
        Column("tensors", right=True),
        Column("recompute", right=True),
        Column("% of fwd", right=True),
        Column("peak ≥", right=True),
        Column("gap", right=True),
        Column("--strategy", minimum=12),
    ]
    rows = [
        [
            _mark(page, point, letters),
            bytes_text(point.nbytes),
            str(point.tensors),
            cost_text(point.cost, front.unit),
            percent_text(point.cost, front.forward_cost) if front.forward_cost else "",
            bytes_text(point.peak_bytes),
            gap_text(point),
            point.label,
        ]
        for point in points
    ]
    return table(page, columns, rows)


def gap_text(point: ParetoPoint) -> str:
    """How far above the least possible cost the plan may be, in percent; a dash where that has no meaning."""
    if point.kind is PointKind.CORNER:
        return "0 %"
    return "—" if point.gap is None else f"{100 * max(point.gap, 0.0):.1f} %"


def _example(points: Sequence[ParetoPoint]) -> ParetoPoint | None:
    """A corner worth looking at: the one that saves most bytes for what it costs, from where the front begins."""
    corners = [point for point in points if point.kind is not PointKind.STRATEGY]
    if len(corners) < 2:
        return None
    first, dearest = corners[0], max(point.cost for point in corners) or 1
    return max(corners, key=lambda p: (first.nbytes - p.nbytes) / (first.nbytes or 1) - p.cost / dearest)
