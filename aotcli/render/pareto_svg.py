"""A front as an SVG plot: bytes to the right, cost upwards, every point with a title that says all of it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from aotcli.ir.pareto import ParetoFront, ParetoPoint, PointKind
from aotcli.ir.trace import Trace
from aotcli.render.page import plain
from aotcli.render.pareto_text import cost_text, distinct_points, gap_text
from aotcli.render.units import bytes_text

WIDTH, HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 24, 64, 56
_TICKS = 5
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#1b1f24}.title{font-size:16px;font-weight:600}.faint{fill:#57606a}
.grid{stroke:#d0d7de}.hull{fill:none;stroke:#0969da;stroke-width:2}.corner{fill:#0969da}
.between{fill:#fff;stroke:#0969da;stroke-width:2}.strategy{fill:#bc4c00}
"""


def render_pareto_svg(trace: Trace, front: ParetoFront) -> str:
    """The whole picture. Corners are discs on the line of the hull, other strategies squares with their names."""
    points = distinct_points(front)
    most = max((point.nbytes for point in points), default=0) or 1
    dearest = max((point.cost for point in points), default=0) or 1

    def place(point: ParetoPoint) -> tuple[float, float]:
        x = _LEFT + point.nbytes / most * (WIDTH - _LEFT - _RIGHT)
        return x, HEIGHT - _BOTTOM - point.cost / dearest * (HEIGHT - _TOP - _BOTTOM)

    title = f"{plain(trace.model.name)}: saved bytes against recomputing"
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<!-- written by aotcli -->\n',
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        ),
        f"<title>{escape(title)}</title><style>{_STYLE}</style>\n",
        '<rect width="100%" height="100%" fill="#fff"/>\n',
        f'<text class="title" x="{_LEFT}" y="28">{escape(title)}</text>\n',
        f'<text class="faint" x="{_LEFT}" y="46">{escape(plain(front.pricing))}</text>\n',
        *_axes(front, most, dearest),
    ]
    corners = [point for point in points if point.kind is PointKind.CORNER]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, corners))
    parts.append(f'<polyline class="hull" points="{line}"/>\n')
    parts += [_mark(front, point, *place(point)) for point in points]
    parts.append("</svg>\n")
    return "".join(parts)


def _axes(front: ParetoFront, most: int, dearest: int) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        x = _LEFT + tick / _TICKS * (WIDTH - _LEFT - _RIGHT)
        y = HEIGHT - _BOTTOM - tick / _TICKS * (HEIGHT - _TOP - _BOTTOM)
        yield f'<path class="grid" d="M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>\n'
        nbytes, cost = bytes_text(most * tick // _TICKS), cost_text(dearest * tick / _TICKS, front.unit)
        yield f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{nbytes}</text>\n'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{cost}</text>\n'
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    yield f'<text class="faint" x="{middle:.1f}" y="{HEIGHT - 14}" text-anchor="middle">saved for the backward</text>\n'


def _mark(front: ParetoFront, point: ParetoPoint, x: float, y: float) -> str:
    said = (
        f"{point.label}: saves {bytes_text(point.nbytes)} in {point.tensors} tensors, recomputes for "
        f"{cost_text(point.cost, front.unit)}, peak at least {bytes_text(point.peak_bytes)}, gap {gap_text(point)}"
    )
    title = f"<title>{escape(plain(said))}</title>"
    if point.kind is not PointKind.STRATEGY:
        return f'<circle class="{point.kind.value}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>\n'
    anchor, shift = ("end", -9) if x > WIDTH / 2 else ("start", 9)
    square = f'<rect class="strategy" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8">{title}</rect>'
    label = escape(plain(point.label.replace("torch-mincut:budget=", "torch ")))
    return f'{square}<text x="{x + shift:.1f}" y="{y - 7:.1f}" text-anchor="{anchor}">{label}</text>\n'
