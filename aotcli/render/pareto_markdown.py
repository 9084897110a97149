"""A front as a table of GitHub-flavoured Markdown."""

from __future__ import annotations

from aotcli.ir.pareto import ParetoFront, PointKind
from aotcli.ir.trace import Trace
from aotcli.render.page import plain
from aotcli.render.pareto_text import cost_text, distinct_points, gap_text
from aotcli.render.units import bytes_text

_KINDS = {PointKind.CORNER: "corner", PointKind.BETWEEN: "between", PointKind.STRATEGY: "other"}


def render_pareto_markdown(trace: Trace, front: ParetoFront, *, target: str) -> str:
    """A heading, the table, and the command that takes a plan."""
    lines = [
        f"### Saved bytes against recomputing: {_cell(trace.model.name)}",
        "",
        (
            f"{_cell(front.pricing)}; level {trace.settings.level}, {trace.environment.device}, "
            f"torch {trace.environment.torch.partition('+')[0]}"
        ),
        "",
        "| | saved | tensors | recompute | peak, at least | gap | strategy |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for point in distinct_points(front):
        cells = [
            _KINDS[point.kind],
            bytes_text(point.nbytes),
            str(point.tensors),
            cost_text(point.cost, front.unit),
            bytes_text(point.peak_bytes),
            gap_text(point),
            f"`{point.label}`",
        ]
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += ["", f"Take one: `aotcli partition {_cell(target)} --strategy STRATEGY`"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|").replace("<", "&lt;")
