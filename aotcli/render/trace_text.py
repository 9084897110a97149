"""The summary of a trace: what was captured, how large it is, and what a reader must know before trusting it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aotcli.analysis.summary import JointCounts, count_joint
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.header import header_lines
from aotcli.render.page import Column, Page, plain, table
from aotcli.render.partition_text import labelled
from aotcli.render.units import bytes_text, count_text, magnitude_text, parameters_text, plural

_MAX_LISTED = 8
_MAX_REGIONS = 20


def render_trace_text(
    trace: Trace, page: Page, *, next_steps: Sequence[str] = (), verbose: bool = False, cached: bool = False
) -> str:
    """The summary of a trace. `next_steps` are commands to offer; `verbose` adds symbols and guards; `cached` says that
    it is one of an earlier run."""
    counts = [count_joint(graph) for graph in trace.regions]
    lines = [*header_lines(page, trace, cached=cached), "", *_size(page, trace, counts)]
    if len(trace.regions) > 1:
        lines += ["", *_regions(page, trace, counts), ""]
    lines += _breaks(page, trace)
    lines += _listed(page, "Mutated", trace.mutations, "nothing")
    lines += _listed(page, "Side effects", trace.side_effects)
    lines += _listed(page, "Hooks", trace.hooks)
    lines += _eager(page, trace)
    lines += _torch(page, trace)
    lines += labelled(page, "Settings", settings_text(trace.settings))
    if verbose:
        lines += _symbols(page, trace) + _listed(page, "Guards", trace.guards, limit=len(trace.guards))
    for note in trace.notes:
        lines += labelled(page, "Note", plain(note))
    if next_steps:
        lines += [
            "",
            page.style("Next:", "bold") + f"  {next_steps[0]}",
            *(f"       {step}" for step in next_steps[1:]),
        ]
    return page.finish(lines)


def _size(page: Page, trace: Trace, counts: Sequence[JointCounts]) -> list[str]:
    total = _total(counts)
    ops = f"{count_text(total.ops)} ops: forward {count_text(total.forward_ops)}"
    ops += f", backward {count_text(total.backward_ops)}"
    lines = labelled(page, "Joint graph", f"{plural(total.nodes, 'node')}, {ops}")
    flops = f"forward {magnitude_text(total.forward_flops, 'FLOP')}"
    flops += f", backward {magnitude_text(total.backward_flops, 'FLOP')}"
    lines += labelled(page, "FLOPs", flops)
    if total.unknown_flops:
        unknown = [f"{count} {name}" for name, count in total.unknown_flops]
        lines += labelled(page, "", f"not counted: {_shortened(unknown)}")
    model = trace.model
    if model.parameters:
        text = f"{parameters_text(model.parameters)} in {bytes_text(model.parameter_bytes)}"
        lines += labelled(page, "Parameters", text)
    if model.buffer_bytes:
        lines += labelled(page, "Buffers", bytes_text(model.buffer_bytes))
    return lines + labelled(page, "Inputs", f"{_shortened(model.inputs)} in {bytes_text(model.input_bytes)}")


def _total(counts: Sequence[JointCounts]) -> JointCounts:
    unknown: dict[str, int] = {}
    for each in counts:
        for name, count in each.unknown_flops:
            unknown[name] = unknown.get(name, 0) + count
    return JointCounts(
        nodes=sum(each.nodes for each in counts),
        ops=sum(each.ops for each in counts),
        forward_ops=sum(each.forward_ops for each in counts),
        backward_ops=sum(each.backward_ops for each in counts),
        forward_flops=sum(each.forward_flops for each in counts),
        backward_flops=sum(each.backward_flops for each in counts),
        unknown_flops=tuple(sorted(unknown.items())),
    )


def _regions(page: Page, trace: Trace, counts: Sequence[JointCounts]) -> list[str]:
    columns = [
        Column("region", minimum=7, style="bold"),
        Column("nodes", right=True),
        Column("forward", right=True),
        Column("backward", right=True),
        Column("params", right=True),
        Column("FLOPs", right=True),
        Column("first line", minimum=9, style="dim", keep_end=True),
    ]
    rows = [_region_cells(graph, each) for graph, each in zip(trace.regions, counts, strict=True)]
    lines = table(page, columns, rows[:_MAX_REGIONS])
    if len(rows) > _MAX_REGIONS:
        lines.append(f"and {len(rows) - _MAX_REGIONS} more regions")
    return lines


def _region_cells(graph: JointGraph, counts: JointCounts) -> list[str]:
    parameters = sum(1 for node in graph.nodes if node.kind is NodeKind.PARAM)
    first = next((node.source for node in graph.nodes if node.kind is NodeKind.OP and node.source), "")
    return [
        graph.name,
        count_text(counts.nodes),
        count_text(counts.forward_ops),
        count_text(counts.backward_ops) if graph.has_backward else "none",
        count_text(parameters),
        magnitude_text(counts.forward_flops + counts.backward_flops),
        first,
    ]


def _breaks(page: Page, trace: Trace) -> list[str]:
    lines: list[str] = []
    for each in trace.breaks[:_MAX_LISTED]:
        where = f" at {each.source}" if each.source else ""
        lines += labelled(page, "Graph break", plain(f"{each.reason}{where}"))
    if len(trace.breaks) > _MAX_LISTED:
        lines += labelled(page, "", f"and {len(trace.breaks) - _MAX_LISTED} more breaks")
    return lines


def _listed(page: Page, label: str, items: Sequence[str], otherwise: str = "", limit: int = _MAX_LISTED) -> list[str]:
    if not items:
        return labelled(page, label, otherwise) if otherwise else []
    return labelled(page, label, plain(_shortened(items, limit)))


def _shortened(items: Sequence[str], limit: int = _MAX_LISTED) -> str:
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return (", ".join(items[:limit]) or "none") + more


def _eager(page: Page, trace: Trace) -> list[str]:
    if trace.eager is None:
        return labelled(page, "Eager saves", "not measured")
    text = f"{bytes_text(trace.eager.saved_bytes)} in {plural(trace.eager.tensors, 'tensor')} for the backward"
    return labelled(page, "Eager saves", text)


def _torch(page: Page, trace: Trace) -> list[str]:
    """PyTorch's own decision, where the record holds it."""
    if not trace.torch_decision:
        return []
    failed = [each.failure for each in trace.torch_decision if each.failure]
    if failed:
        return labelled(page, "PyTorch", plain(f"its partitioner failed: {failed[0]}"))
    saved = bytes_text(sum(each.saved_bytes for each in trace.torch_decision))
    budgets = sorted({each.budget for each in trace.torch_decision} - {1.0})
    budget = f" at activation memory budget {budgets[0]:g}" if budgets else ""
    return labelled(page, "PyTorch", f"its own partitioner saves {saved}{budget} (in the record, as @torch)")


def settings_text(settings: CaptureSettings) -> str:
    """Every capture setting that is not at its default, after the level."""
    texts = [f"level {settings.level}"]
    for each in dataclasses.fields(settings):
        value = getattr(settings, each.name)
        if each.name == "level" or value == each.default:
            continue
        if each.name == "overrides":
            texts += [f"{key}={text}" for key, text in value]
        elif isinstance(value, tuple):
            texts.append(f"{each.name} {' '.join(str(part) for part in value)}")
        else:
            texts.append(each.name if value is True else f"{each.name} {value}")
    if len(texts) == 1:
        texts.append("all others at their defaults")
    return plain(", ".join(texts))


def _symbols(page: Page, trace: Trace) -> list[str]:
    found = {symbol.name: symbol for graph in trace.regions for symbol in graph.symbols}
    texts = [f"{symbol.name} = {symbol.source} (traced at {symbol.hint})" for symbol in found.values()]
    return _listed(page, "Symbols", texts, limit=len(texts))
