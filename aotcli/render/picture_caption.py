"""What a picture says at its head: the model, and the verdict of the plan in numbers."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.scene import SceneTotals
from aotcli.analysis.summary import RecomputeSummary
from aotcli.ir.trace import Trace
from aotcli.render.header import SEPARATOR, device_text, input_texts, parameter_texts, step_text
from aotcli.render.page import plain
from aotcli.render.svg import Caption
from aotcli.render.units import bytes_text, change_text, count_text, magnitude_text, plural


def picture_caption(
    trace: Trace,
    region: str,
    totals: SceneTotals,
    *,
    strategy: str = "",
    recomputed: RecomputeSummary | None = None,
    part: str = "",
    compared: str = "",
    other_saved_bytes: int = 0,
) -> Caption:
    """The head of one region's picture. `strategy` is "" for the graph without a plan; `part` says what is drawn where
    that is not all; `compared` names the other step, whose plan saves `other_saved_bytes`."""
    names = [trace.model.name, *([region] if len(trace.regions) > 1 else []), strategy or "joint graph"]
    title = SEPARATOR.join(plain(name) for name in names) + (f" against {plain(compared)}" if compared else "")
    eager = trace.eager.saved_bytes if trace.eager is not None and len(trace.regions) == 1 else None
    lines = [SEPARATOR.join(_verdict(totals, strategy, recomputed, eager)), SEPARATOR.join(_traced(trace))]
    if compared and strategy:
        change = change_text(totals.saved_bytes, other_saved_bytes)
        lines.insert(0, f"{plain(compared)} saves {bytes_text(other_saved_bytes)}: here {change}")
    if part:
        lines.insert(0, plain(part))
    return Caption(title, tuple(lines))


def plan_caption(title: str, totals: SceneTotals, recomputed: RecomputeSummary) -> Caption:
    """The head of a picture of a plan whose trace is not at hand."""
    return Caption(plain(title), (SEPARATOR.join(_verdict(totals, title, recomputed, None)),))


def _verdict(
    totals: SceneTotals, strategy: str, recomputed: RecomputeSummary | None, eager_bytes: int | None
) -> list[str]:
    flops = magnitude_text(totals.forward_flops, "FLOP") if totals.forward_flops else ""
    ops = f"forward {count_text(totals.forward_ops)} ops{f', {flops}' if flops else ''}"
    if not totals.backward_ops:
        return ["no backward", ops]
    ops += f"; backward {count_text(totals.backward_ops)} ops"
    if totals.backward_flops:
        ops += f", {magnitude_text(totals.backward_flops, 'FLOP')}"
    if not strategy:
        return [ops]
    eager = "" if eager_bytes is None else f" (eager {bytes_text(eager_bytes)})"
    saved = f"saves {bytes_text(totals.saved_bytes)} in {plural(totals.saved_values, 'tensor')}{eager}"
    again = "recomputes nothing"
    if recomputed is not None and recomputed.ops:
        again = f"recomputes {plural(recomputed.ops, 'op')}"
        again += f", {magnitude_text(totals.recompute_flops, 'FLOP')}" if totals.recompute_flops else ", no matmul"
    return [saved, again, f"peak ≥ {bytes_text(totals.peak_bytes)}", ops]


def _traced(trace: Trace) -> Sequence[str]:
    return [
        plain(text)
        for text in (
            f"{step_text(trace)}, {'train' if trace.train else 'eval'}",
            *parameter_texts(trace),
            *input_texts(trace),
            device_text(trace),
            f"level {trace.settings.level}",
            f"torch {trace.environment.torch.partition('+')[0]}",
        )
    ]
