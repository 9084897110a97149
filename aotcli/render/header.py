"""The lines that say what was traced; every view starts with them."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.trace import Trace
from aotcli.render.page import Page, plain
from aotcli.render.units import count_text, dtype_text, parameters_text, plural

SEPARATOR = " · "
_MAX_INPUTS = 4


def header_lines(page: Page, trace: Trace, *, cached: bool = False) -> list[str]:
    """Model, loss, mode, parameters, inputs, device; then level, torch, regions, nodes, tensors; whether it is a
    capture of an earlier run."""
    name = plain(trace.model.name)
    indent = min(len(name) + 2, 24)
    what = [f"{step_text(trace)}, {'train' if trace.train else 'eval'}", *parameter_texts(trace), *input_texts(trace)]
    what.append(device_text(trace))
    nodes = sum(len(graph.nodes) for graph in trace.regions)
    parts = [*what, f"level {trace.settings.level}", f"torch {trace.environment.torch.partition('+')[0]}"]
    breaks = f", {plural(len(trace.breaks), 'graph break')}" if trace.breaks else ""
    parts.append(f"{plural(len(trace.regions), 'region')}{breaks}")
    parts += [f"{count_text(nodes)} nodes", trace.tensors, *(["cached"] if cached else [])]
    return flow(page, [plain(part) for part in parts], indent, page.style(name, "bold") + " " * (indent - len(name)))


def flow(page: Page, parts: Sequence[str], indent: int, first: str = "") -> list[str]:
    """`parts` with separators on as many lines as they need; `first` (already `indent` wide) opens the first line."""
    lines: list[str] = []
    current = ""
    for part in parts:
        longer = f"{current}{SEPARATOR}{part}" if current else part
        if current and indent + len(longer) > page.width:
            lines.append(current)
            current = part
        else:
            current = longer
    lines.append(current)
    return [(first or " " * indent) + lines[0]] + [" " * indent + line for line in lines[1:]]


def step_text(trace: Trace) -> str:
    """``model + loss``, ``model``, or what a step without a backward is."""
    if not any(graph.has_backward for graph in trace.regions):
        return "forward only"
    return "model + loss" if trace.loss else "model, no loss"


def device_text(trace: Trace) -> str:
    name = trace.environment.device_name
    return f"{trace.environment.device} ({name})" if name else trace.environment.device


def input_texts(trace: Trace) -> list[str]:
    """Inputs, those of one layout together: ``tokens, targets i64[8,1024]``."""
    names: dict[str, list[str]] = {}
    for text in trace.model.inputs:
        name, _, layout = text.rpartition(" ")
        names.setdefault(layout, []).append(name)
    texts: list[str] = []
    for layout, group in names.items():
        shown = ", ".join(group[:_MAX_INPUTS])
        more = f" and {len(group) - _MAX_INPUTS} more" if len(group) > _MAX_INPUTS else ""
        texts.append(f"{shown}{more} {layout}".strip())
    return [*texts[:_MAX_INPUTS], *([f"{len(texts) - _MAX_INPUTS} more inputs"] if len(texts) > _MAX_INPUTS else [])]


def parameter_texts(trace: Trace) -> list[str]:
    """``124.4 M params f32``; nothing where there are none."""
    if not trace.model.parameters:
        return []
    dtypes = "/".join(dtype_text(dtype) for dtype in trace.model.dtypes)
    return [f"{parameters_text(trace.model.parameters)} params {dtypes}".rstrip()]
