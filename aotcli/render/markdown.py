"""Plans as GitHub-flavoured Markdown, for pull requests and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.layers import SavedRow
from aotcli.analysis.summary import Plan, summarize_plan_recomputed
from aotcli.ir.trace import Trace
from aotcli.render.comparison_text import comparison_rows
from aotcli.render.header import SEPARATOR, device_text, input_texts, parameter_texts, step_text
from aotcli.render.page import plain
from aotcli.render.partition_text import eager_text, plan_notes, recompute_text
from aotcli.render.saved_table import RowOptions, select_rows
from aotcli.render.units import bytes_text, count_text, dtype_text, magnitude_text, percent_text, plural, shape_text

_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~"})


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it is, within a table too."""
    return plain(text).replace("\n", " ").translate(_SPECIAL)


def render_partition_markdown(trace: Trace, plans: Sequence[Plan], options: RowOptions) -> str:
    """One plan with its table of saved values, or several side by side."""
    lines = [f"### Saved for backward: {escape(trace.model.name)}", "", escape(_traced(trace)), ""]
    lines += _comparison(trace, plans) if len(plans) > 1 else _plan(trace, plans[0], options)
    return "\n".join(lines).rstrip() + "\n"


def _traced(trace: Trace) -> str:
    parts = [step_text(trace), "train" if trace.train else "eval", *parameter_texts(trace), *input_texts(trace)]
    parts += [device_text(trace), f"level {trace.settings.level}", f"torch {trace.environment.torch}"]
    parts += [plural(len(trace.regions), "region"), plural(len(trace.breaks), "break")]
    return SEPARATOR.join(parts)


def _plan(trace: Trace, plan: Plan, options: RowOptions) -> list[str]:
    verdict = f"**{bytes_text(plan.saved_bytes)}** in {plural(plan.saved_tensors, 'tensor')}"
    verdict += f" with `{plan.label}`; {eager_text(trace, plan)}"
    lines = [verdict]
    for graph, partition in zip(trace.regions, plan.partitions, strict=True):
        rows = select_rows(graph, partition, options)
        if len(trace.regions) > 1:
            lines += ["", f"**{escape(graph.name)}**: {bytes_text(partition.saved_bytes)}"]
        if rows.shown:
            lines += ["", *_saved_table(rows.shown, plan.saved_bytes, options.flat)]
        if rows.rest:
            rest = bytes_text(sum(row.nbytes for row in rows.rest))
            lines += ["", f"and {len(rows.rest)} more rows, {rest} together"]
    recomputed = recompute_text(summarize_plan_recomputed(trace, plan))
    lines += [
        "",
        f"- Recomputed: {recomputed}, {magnitude_text(plan.recompute_flops, 'FLOP')}",
        f"- Ops: forward {count_text(plan.forward_ops)}, backward {count_text(plan.backward_ops)}",
        f"- Peak: at least {bytes_text(plan.peak_bytes)} above parameters and inputs",
        f"- Also kept: {bytes_text(plan.saved_input_bytes)} of parameters, buffers and inputs",
    ]
    return lines + [f"- Note: {escape(note)}" for note in plan_notes(trace, plan)]


def _saved_table(rows: Sequence[SavedRow], total: int, flat: bool) -> list[str]:
    head = ["size", "%", "name" if flat else "n", "module", "what", "shape", "dtype", "why it is saved", "line"]
    lines = [_line(head), "|" + "|".join(["--:", "--:", "---" if flat else "--:", *["---"] * 6]) + "|"]
    for row in rows:
        count = escape(row.values[0].name) if flat else count_text(row.count)
        cells = [bytes_text(row.nbytes), percent_text(row.nbytes, total), count, escape(row.module), escape(row.what)]
        cells += [shape_text(row.shape), dtype_text(row.dtype), escape(row.reason), escape(row.source or "")]
        lines.append(_line(cells))
    return lines


def _comparison(trace: Trace, plans: Sequence[Plan]) -> list[str]:
    lines = [_line(["", *(f"`{plan.label}`" for plan in plans)]), "|---|" + "--:|" * len(plans)]
    return lines + [_line([label, *cells]) for label, cells in comparison_rows(trace, plans)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
