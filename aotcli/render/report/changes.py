"""What changed against another step: the verdict, and lists whose rows are linked to nodes of the report's own step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotcli.analysis.report import RegionReport, StepReport
from aotcli.ir.difference import Difference, SavedSide
from aotcli.render.diff_rows import shown_changes, tie_note
from aotcli.render.diff_words import (
    cause_text,
    confidence_text,
    environment_text,
    fate_text,
    is_free_rewrite,
    outside_text,
    rewrite_text,
    same_text,
    signed_bytes,
    value_text,
    verdict_text,
)
from aotcli.render.units import dtype_text, plural


def changes_document(report: StepReport) -> dict[str, Any] | None:
    """Texts and rows; None where nothing is compared. A row's `nodes` are pairs of a region and a node."""
    if report.other is None:
        return None
    difference = report.other.difference
    find = _Finder(report.regions, difference)
    return {
        "left": _side_text(difference.left.name, difference.left.model, difference.left.strategy),
        "right": _side_text("this report", difference.right.model, difference.right.strategy),
        "delta_bytes": difference.saved_delta_bytes,
        "delta": signed_bytes(difference.saved_delta_bytes),
        "verdict": same_text(difference) if difference.is_empty else verdict_text(difference),
        "is_empty": difference.is_empty,
        "notes": [text for text in _notes(difference) if text],
        "lists": [_saved(difference, find), *_graph(difference, find)],
    }


def _graph(difference: Difference, find: _Finder) -> list[dict[str, Any]]:
    """What became of ops and values, a sentence each."""
    fates = [(fate_text(row), find.nodes(row.region, row.right.names)) for row in difference.fates]
    rewrites = [row for row in difference.rewrites if not is_free_rewrite(row)]
    ops = [(rewrite_text(row), find.nodes(row.region, row.right.names)) for row in rewrites]
    values = [(value_text(row), find.nodes(row.region, row.right.names)) for row in difference.values]
    return [_list("Decided otherwise", fates), _list("Ops that became others", ops), _list("Values", values)]


class _Finder:
    """Nodes of the report by a difference's region and name."""

    def __init__(self, regions: Sequence[RegionReport], difference: Difference) -> None:
        places = {region.graph.name: place for place, region in enumerate(regions)}
        self._place = [places.get(region.right, -1) for region in difference.regions]
        self._regions = regions

    def nodes(self, region: int, names: Iterable[str]) -> list[list[int]]:
        place = self._place[region] if region < len(self._place) else -1
        if place < 0:
            return []
        index = self._regions[place].graph.index
        return [[place, index[name]] for name in names if name in index]


def _side_text(name: str, model: str, strategy: str) -> str:
    return f"{name} ({model}, {strategy})" if name != model else f"{name} ({strategy})"


def _notes(difference: Difference) -> list[str]:
    if difference.is_empty:
        return list(difference.unknown)
    environment = environment_text(difference)
    beside = ", ".join(outside_text(difference))
    return [
        cause_text(difference),
        f"Beside that: {beside}" if beside else "",
        f"Traced differently: {environment}" if environment else "",
        tie_note(difference),
        *difference.unknown,
        "" if difference.unknown else f"Paired: {confidence_text(difference)}",
    ]


def _saved(difference: Difference, find: _Finder) -> dict[str, Any]:
    """The saved tensors that differ, as a table."""
    rows: list[dict[str, Any]] = []
    for shown in shown_changes(difference):
        nodes = [node for row in shown.rows for node in find.nodes(row.region, _names(row.right))]
        shape = f"{dtype_text(shown.dtype)} {shown.shape}".strip()
        where = [shown.module, shown.what, shape, shown.how, shown.source]
        rows.append({"cells": [signed_bytes(shown.delta_bytes), f"{shown.count}", *where], "nodes": nodes})
    heads = ["Change", "n", "Module", "What", "Shape", "Before", "Line"]
    title = f"Saved tensors that differ: {plural(len(rows), 'row')}"
    return {"title": title, "heads": heads, "right": 2, "rows": rows}


def _names(side: SavedSide | None) -> tuple[str, ...]:
    return () if side is None else side.names


def _list(title: str, rows: Sequence[tuple[str, list[list[int]]]]) -> dict[str, Any]:
    return {
        "title": title,
        "heads": [""],
        "right": 0,
        "rows": [{"cells": [text], "nodes": nodes} for text, nodes in rows],
    }
