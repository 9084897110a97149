"""The partition view: the verdict, what is saved and why, what that costs, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from aotcli.analysis.devices import DeviceSensitivity, device_sensitivities
from aotcli.analysis.op_names import op_label
from aotcli.analysis.peak import PeakPlace
from aotcli.analysis.summary import Alternative, Plan, RecomputeSummary, summarize_plan_recomputed
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Partition, SavedKind
from aotcli.ir.tensor import SymbolSpec
from aotcli.ir.trace import Trace
from aotcli.render.header import header_lines
from aotcli.render.page import Page, plain, spread
from aotcli.render.saved_table import RowOptions, saved_lines, select_rows
from aotcli.render.units import bytes_text, change_text, count_text, magnitude_text, plural

LABEL_WIDTH = 13


@dataclass(frozen=True, slots=True)
class PartitionView:
    """How to show a plan.

    `target` is how the command line named model and settings, for commands to copy; `peak` is where the peak lies;
    `usage` the lines to paste into a training script; `quiet` leaves notes and next steps out;
    `cached` says that the trace is one of an earlier run; `why` is a value worth asking `explain` about.
    """

    rows: RowOptions = field(default_factory=RowOptions)
    target: str = "MODEL"
    peak: PeakPlace | None = None
    alternative: Alternative | None = None
    usage: tuple[str, ...] = ()
    quiet: bool = False
    cached: bool = False
    why: str = ""


def render_partition_text(trace: Trace, plan: Plan, page: Page, view: PartitionView) -> str:
    """One strategy's plan for every region of a trace."""
    lines = [*header_lines(page, trace, cached=view.cached), "", *_verdict(page, trace, plan), ""]
    lines += _regions(page, trace, plan, view.rows)
    lines += _also_kept(page, trace, plan, view.rows)
    lines += ["", *_costs(page, trace, plan, view.peak)]
    if not view.quiet:
        lines += _notes(page, trace, plan)
        lines += _next_steps(page, plan, view)
    return page.finish(lines)


def _verdict(page: Page, trace: Trace, plan: Plan) -> list[str]:
    if not any(graph.has_backward for graph in trace.regions):
        return [page.style("Saved for backward  nothing: no input or parameter needs a gradient", "bold")]
    size = bytes_text(plan.saved_bytes)
    left = f"{page.style('Saved for backward', 'bold')}  {page.style(size, 'bold', 'green')}"
    left += f" in {plural(plan.saved_tensors, 'tensor')}"
    return spread(page, left, eager_text(trace, plan))


def eager_text(trace: Trace, plan: Plan) -> str:
    """What eager saves for the same step, and how the plan compares."""
    if trace.eager is None:
        return "eager not measured"
    eager = trace.eager.saved_bytes
    if len(trace.regions) > 1:  # see regions_note
        return f"eager saves {bytes_text(eager)}"
    change = change_text(plan.saved_bytes, eager)
    compared = change if change.endswith("same") else f"here {change}"
    return f"eager saves {bytes_text(eager)} ({compared})"


def _regions(page: Page, trace: Trace, plan: Plan, options: RowOptions) -> list[str]:
    lines: list[str] = []
    several = len(trace.regions) > 1
    for graph, partition in zip(trace.regions, plan.partitions, strict=True):
        if several:
            lines += ["", _region_heading(page, graph, partition)]
        rows = select_rows(graph, partition, options)
        if rows.shown or rows.rest:
            lines += saved_lines(page, rows, plan.saved_bytes, options)
    return lines[1:] if several else lines


def _region_heading(page: Page, graph: JointGraph, partition: Partition) -> str:
    what = f"saves {bytes_text(partition.saved_bytes)}" if graph.has_backward else "forward only, saves nothing"
    return f"{page.style(plain(graph.name), 'bold')}  {what} · {count_text(len(graph.nodes))} nodes"


_KEPT = {
    Category.PARAMETER: "parameters",
    Category.BUFFER: "buffers",
    Category.INPUT: "inputs",
    Category.OUTPUT: "results of the step",
}


def _also_kept(page: Page, trace: Trace, plan: Plan, options: RowOptions) -> list[str]:
    """Saved values that cost nothing extra: parameters, buffers, inputs, and results, which live on anyway."""
    sizes: dict[Category, int] = {}
    numbers: list[str] = []
    opaque = 0
    for partition in plan.partitions:
        for value in partition.saved:
            sizes[value.category] = sizes.get(value.category, 0) + value.nbytes
            if isinstance(value.value, SymbolSpec):
                numbers.append(value.value.expr)
            opaque += value.kind is SavedKind.OPAQUE
    parts = [f"{label} {bytes_text(sizes[kind])}" for kind, label in _KEPT.items() if kind in sizes]
    texts = [f"{', '.join(parts)} (not activations)"] if parts else []
    if numbers:
        shown = ", ".join(numbers[:4]) + (", ..." if len(numbers) > 4 else "")
        texts.append(f"{plural(len(numbers), 'symbolic size')} ({shown})")
    if opaque:
        texts.append(plural(opaque, "opaque object"))
    lines = page.wrap("; ".join(texts), 11, "Also kept: ") if texts else []
    if parts and options.every:
        for graph, partition in zip(trace.regions, plan.partitions, strict=True):
            rows = select_rows(graph, partition, options, tuple(_KEPT))
            if rows.shown:
                lines += saved_lines(page, rows, sum(sizes[kind] for kind in _KEPT if kind in sizes), options)
    return lines


def labelled(page: Page, label: str, text: str) -> list[str]:
    """A line with a bold label; further lines are indented under the text."""
    lines = page.wrap(text, LABEL_WIDTH, label)
    return [page.style(label, "bold") + lines[0][len(label) :], *lines[1:]]


def _costs(page: Page, trace: Trace, plan: Plan, place: PeakPlace | None) -> list[str]:
    recomputed = summarize_plan_recomputed(trace, plan)
    lines = labelled(page, "Recomputed", f"{recompute_text(recomputed)}{_flops_added(plan)}")
    ops = f"forward {_ops(plan.forward_ops, plan.forward_flops)}"
    ops += f", backward {_ops(plan.backward_ops, plan.backward_flops)}"
    if plan.unknown_flops:
        names = list(dict.fromkeys(op_label(op) for op in plan.unknown_flops))
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        ops += f"; FLOPs unknown for {shown}"
    lines += labelled(page, "Ops", ops)
    return lines + labelled(page, "Peak", peak_text(plan, place))


def peak_text(plan: Plan, place: PeakPlace | None) -> str:
    """The predicted peak, as the lower bound that it is."""
    text = f"≥ {bytes_text(plan.peak_bytes)}"
    if place is not None:
        where = f" of {place.module}" if place.module else ""
        text += f" at {place.what}{where} in the {'backward' if place.backward else 'forward'}"
    return f"{text} (lower bound: no workspace)"


def _ops(count: int, flops: int) -> str:
    return f"{count_text(count)} ops ({magnitude_text(flops, 'FLOP')})"


def _flops_added(plan: Plan) -> str:
    useful = plan.forward_flops + plan.backward_flops - plan.recompute_flops
    share = f", {100.0 * plan.recompute_flops / useful:.1f} % more" if useful and plan.recompute_flops else ""
    return f" · {magnitude_text(plan.recompute_flops, 'FLOP')}{share}" if plan.recompute_flops else ""


def recompute_text(recomputed: RecomputeSummary) -> str:
    """``312 ops, pointwise only``; with compute-intensive ops among them, which."""
    if not recomputed.ops and not recomputed.views:
        return "nothing"
    parts = [plural(recomputed.ops, "op")] if recomputed.ops else ["views only"]
    if recomputed.intensive:
        listed = ", ".join(f"{count} {label}" for label, count in recomputed.intensive[:3])
        parts.append(f"{listed} among them")
    elif recomputed.ops and recomputed.pointwise == recomputed.ops:
        parts.append("pointwise only")
    elif recomputed.ops:
        parts.append("no matmul, convolution or attention")
    return ", ".join(parts)


def device_note(trace: Trace, found: Sequence[DeviceSensitivity]) -> str:
    """What another device could change; empty where nothing could, or where the trace was made there."""
    if not found or trace.environment.device != "cpu":
        return ""
    kinds = ", ".join(f"{each.ops} {each.kind}" for each in found)
    at_stake = sum(each.saved_bytes for each in found)
    stake = f"; {bytes_text(at_stake)} saved here hang on it" if at_stake else ""
    ops = "op" if sum(each.ops for each in found) == 1 else "ops"
    return f"traced on cpu: on CUDA other kernels may run for {kinds} {ops}{stake}"


def regions_note(trace: Trace) -> str:
    """Why the sum over several regions is not what eager saves."""
    if len(trace.regions) < 2:
        return ""
    return "what one region hands to the next counts as its results and inputs here, and as saved in eager"


def plan_notes(trace: Trace, plan: Plan) -> list[str]:
    """What a reader must know before trusting the numbers: the device, the capture, the plan."""
    sensitive = device_sensitivities(trace.regions, plan.partitions)
    notes = [regions_note(trace), device_note(trace, sensitive), *trace.notes, *plan.notes]
    return [note for note in dict.fromkeys(notes) if note]


def _notes(page: Page, trace: Trace, plan: Plan) -> list[str]:
    return [line for note in plan_notes(trace, plan) for line in labelled(page, "Note", plain(note))]


def _next_steps(page: Page, plan: Plan, view: PartitionView) -> list[str]:
    lines = [""]
    best = view.alternative
    if best is not None:
        change = change_text(best.saved_bytes, plan.saved_bytes)
        price = f"by rerunning {recompute_text(best.recomputed)}"
        if best.recompute_flops:
            price += f" ({magnitude_text(best.recompute_flops, 'FLOP')})"
        wrapped = page.wrap(f"Could be less: {bytes_text(best.saved_bytes)} ({change}) {price}", 2)
        lines += [wrapped[0].strip(), *wrapped[1:]]
        lines.append("  " + " ".join(word for word in ("aotcli partition", view.target, best.arguments) if word))
    if view.usage:
        lines.append(page.style("Use it:", "bold") + f"  {view.usage[0]}")
        lines += [f"         {line}" for line in view.usage[1:]]
    if view.why:
        strategy = [] if plan.label == "mincut" else ["-s", shlex.quote(plan.label)]
        words = ["aotcli explain", view.target, shlex.quote(view.why), *strategy]
        lines.append(page.style("Why:", "bold") + f"     {' '.join(word for word in words if word)}")
    return lines
