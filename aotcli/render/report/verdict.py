"""The first thing that the report says: how much is saved, beside eager, what that costs, and what was traced."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.op_names import node_label
from aotcli.analysis.peak import PeakPlace
from aotcli.analysis.report import StepReport, moved_bytes
from aotcli.analysis.summary import Plan, summarize_plan_recomputed
from aotcli.ir.trace import Trace
from aotcli.render.header import device_text, input_texts, parameter_texts, step_text
from aotcli.render.partition_text import eager_text, plan_notes, recompute_text
from aotcli.render.trace_text import settings_text
from aotcli.render.units import bytes_text, change_text, count_text, magnitude_text, plural


def verdict_document(report: StepReport) -> dict[str, Any]:
    """Texts of the first screen, and the bytes that its bars compare."""
    trace, plan = report.trace, report.plan
    return {
        "model": trace.model.name,
        "strategy": plan.label,
        "has_backward": any(graph.has_backward for graph in trace.regions),
        "saved_bytes": plan.saved_bytes,
        "saved_tensors": plan.saved_tensors,
        "eager_bytes": None if trace.eager is None else trace.eager.saved_bytes,
        "eager": eager_text(trace, plan),
        "eager_change": _eager_change(trace, plan),
        "tiles": _tiles(report),
        "facts": _facts(trace, plan),
        "notes": plan_notes(trace, plan),
        "breaks": [f"{each.reason} ({each.source})" if each.source else each.reason for each in trace.breaks],
        "command": report.command,
        "partition": _partition_command(report),
        "usage": list(plan.usage),
    }


def _partition_command(report: StepReport) -> str:
    """`aotcli partition` of the same model, to which a plan's own words are added."""
    words = report.command.partition(" --strategy ")[0]
    return words.replace("aotcli report", "aotcli partition", 1) or f"aotcli partition {report.trace.model.spec}"


def _eager_change(trace: Trace, plan: Plan) -> str:
    """The comparison with eager where it means something: what regions hand each other is counted otherwise."""
    if trace.eager is None or len(trace.regions) > 1:
        return ""
    return change_text(plan.saved_bytes, trace.eager.saved_bytes)


def _tiles(report: StepReport) -> list[dict[str, str]]:
    trace, plan = report.trace, report.plan
    recomputed = summarize_plan_recomputed(trace, plan)
    moved = moved_bytes(trace.regions, plan.partitions)
    again = [recompute_text(recomputed).partition(", ")[2]]
    if moved:
        again.append(f"{magnitude_text(plan.recompute_flops, 'FLOP')}; they move {bytes_text(moved)} unfused")
    useful = plan.forward_flops + plan.backward_flops - plan.recompute_flops
    share = f", {100.0 * plan.recompute_flops / useful:.1f} % of it again" if useful and plan.recompute_flops else ""
    flops = [
        f"forward {magnitude_text(plan.forward_flops, 'FLOP')}",
        f"backward {magnitude_text(plan.backward_flops, 'FLOP')}{share}",
    ]
    if plan.unknown_flops:
        flops.append(f"unknown for {plural(len(plan.unknown_flops), 'kind of op', 'kinds of op')}")
    kept = [
        f"parameters {bytes_text(trace.model.parameter_bytes)}",
        f"{bytes_text(plan.saved_input_bytes)} of parameters and inputs are read again",
    ]
    return [
        _tile("Recomputed", plural(recomputed.ops, "op") if recomputed.ops else "nothing", [t for t in again if t]),
        _tile("Predicted peak", f"≥ {bytes_text(plan.peak_bytes)}", _peak_texts(report)),
        _tile("FLOPs", magnitude_text(plan.forward_flops + plan.backward_flops, "FLOP"), flops),
        _tile("In memory anyway", bytes_text(trace.model.parameter_bytes + trace.model.input_bytes), kept),
    ]


def _tile(label: str, value: str, details: list[str]) -> dict[str, str]:
    return {"label": label, "value": value, "detail": "; ".join(details)}


def _peak_texts(report: StepReport) -> list[str]:
    place = peak_place(report)
    bound = "a lower bound: no workspace"
    if place is None:
        return [bound]
    where = f" of {place.module}" if place.module else ""
    return [f"at {place.what}{where} in the {'backward' if place.backward else 'forward'}", bound]


def peak_place(report: StepReport) -> PeakPlace | None:
    """Where the largest peak of all regions lies; None where nothing runs."""
    regions = [region for region in report.regions if region.lifetimes.timeline.peak_name is not None]
    if not regions:
        return None
    region = max(regions, key=lambda each: each.lifetimes.timeline.peak_bytes)
    timeline = region.lifetimes.timeline
    position = region.graph.index.get(timeline.peak_name or "")
    if position is None:
        return None
    node = region.graph.nodes[position]
    return PeakPlace(node_label(region.graph, node), node.module, timeline.peak_in_backward)


def _facts(trace: Trace, plan: Plan) -> list[list[str]]:
    """What was traced, as pairs of a label and a text."""
    breaks = f", {plural(len(trace.breaks), 'graph break')}" if trace.breaks else ""
    nodes = sum(len(graph.nodes) for graph in trace.regions)
    return [
        ["step", f"{step_text(trace)}, {'train' if trace.train else 'eval'}"],
        ["model", ", ".join(parameter_texts(trace)) or "no parameters"],
        ["inputs", ", ".join(input_texts(trace)) or "none"],
        ["device", device_text(trace)],
        ["level", trace.settings.level],
        ["torch", trace.environment.torch.partition("+")[0]],
        ["tensors", trace.tensors],
        ["graph", f"{count_text(nodes)} nodes in {plural(len(trace.regions), 'region')}{breaks}"],
        ["halves", f"forward {plural(plan.forward_ops, 'op')}, backward {plural(plan.backward_ops, 'op')}"],
        ["settings", settings_text(trace.settings)],
    ]
