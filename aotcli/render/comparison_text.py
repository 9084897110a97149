"""Several strategies side by side: their totals, then what each saves that the first does not, and the reverse."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.layers import SavedRow, fold_saved
from aotcli.analysis.summary import Plan, summarize_plan_recomputed
from aotcli.ir.partition import Category, Partition, SavedValue
from aotcli.ir.trace import Trace
from aotcli.render.header import header_lines
from aotcli.render.page import Column, Page, table
from aotcli.render.partition_text import labelled
from aotcli.render.saved_table import RowOptions, Rows, cut_rows, saved_lines
from aotcli.render.units import bytes_text, change_text, count_text, magnitude_text, plural

_DIFFERENCE_LIMIT = 6


def render_comparison_text(
    trace: Trace, plans: Sequence[Plan], page: Page, options: RowOptions, *, cached: bool = False
) -> str:
    """The plans' totals in columns; then the difference of each plan's saved set to the first plan's."""
    lines = [*header_lines(page, trace, cached=cached), "", *_totals(page, trace, plans)]
    told: dict[frozenset[object], Plan] = {_saved_set(plans[0]): plans[0]}
    for other in plans[1:]:
        known = told.setdefault(_saved_set(other), other)
        if known is not other:
            lines += ["", page.style(f"{known.label} and {other.label} save the same values", "bold")]
        else:
            lines += ["", *_difference(page, trace, plans[0], other, options)]
    notes = dict.fromkeys([*trace.notes, *(note for plan in plans for note in plan.notes)])
    for note in notes:
        lines += labelled(page, "Note", note)
    return page.finish(lines)


def comparison_rows(trace: Trace, plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    """(what, one text for each plan)."""
    # Regions hand tensors on, which eager counts as saved: see regions_note.
    eager = trace.eager.saved_bytes if trace.eager is not None and len(trace.regions) == 1 else None
    rows = [("saved", [bytes_text(plan.saved_bytes) for plan in plans])]
    if eager is not None:
        rows.append((f"vs eager ({bytes_text(eager)})", [change_text(plan.saved_bytes, eager) for plan in plans]))
    rows += [
        ("tensors", [count_text(plan.saved_tensors) for plan in plans]),
        ("recomputed ops", [count_text(summarize_plan_recomputed(trace, plan).ops) for plan in plans]),
        ("recompute FLOPs", [magnitude_text(plan.recompute_flops, "FLOP") for plan in plans]),
        ("forward ops", [count_text(plan.forward_ops) for plan in plans]),
        ("backward ops", [count_text(plan.backward_ops) for plan in plans]),
        ("peak, at least", [bytes_text(plan.peak_bytes) for plan in plans]),
    ]
    return rows


def _totals(page: Page, trace: Trace, plans: Sequence[Plan]) -> list[str]:
    columns = [Column("", minimum=10, style="bold")]
    columns += [Column(plan.label, right=True, minimum=9) for plan in plans]
    return table(page, columns, [[label, *cells] for label, cells in comparison_rows(trace, plans)])


def _difference(page: Page, trace: Trace, first: Plan, other: Plan, options: RowOptions) -> list[str]:
    only_first = _rows_of_difference(trace, first, other)
    only_other = _rows_of_difference(trace, other, first)
    lines: list[str] = []
    for plan, rows, instead in ((first, only_first, other), (other, only_other, first)):
        total = sum(row.nbytes for row in rows)
        tensors = plural(sum(row.count for row in rows), "tensor")
        head = page.style(f"Only {plan.label} saves, not {instead.label}", "bold")
        lines.append(f"{head}  {f'{bytes_text(total)} in {tensors}' if rows else 'nothing'}")
        if rows:
            lines += saved_lines(page, _cut(rows, options), total, options)
    return lines


def _saved_set(plan: Plan) -> frozenset[object]:
    """What a plan saves: activations by region and storage."""
    return frozenset(
        (region, _identity(value))
        for region, partition in enumerate(plan.partitions)
        for value in partition.saved
        if value.category is Category.ACTIVATION
    )


def _cut(rows: Sequence[SavedRow], options: RowOptions) -> Rows:
    limit = _DIFFERENCE_LIMIT if options.limit is None else options.limit
    return cut_rows(rows, len(rows) if options.every else limit)


def _rows_of_difference(trace: Trace, plan: Plan, other: Plan) -> list[SavedRow]:
    rows: list[SavedRow] = []
    for graph, mine, theirs in zip(trace.regions, plan.partitions, other.partitions, strict=True):
        rows += fold_saved(graph, saved_only_by(mine, theirs))
    return sorted(rows, key=lambda row: -row.nbytes)


def saved_only_by(mine: Partition, theirs: Partition) -> list[SavedValue]:
    """Activations of one plan whose storage the other does not save: two views of one storage are no difference."""
    kept = {_identity(value) for value in theirs.saved}
    return [v for v in mine.saved if v.category is Category.ACTIVATION and _identity(v) not in kept]


def _identity(value: SavedValue) -> int | str:
    return value.storage if value.storage >= 0 else value.name
