"""The report's data: schema "aotcli.report", embedded in the page as JSON.

Tables are objects of equally long columns. Texts stand once in `strings`; a column of texts holds their numbers.
Nodes of a region are numbered as in its joint graph, the output left out. Bytes and FLOPs are integers. A list of
lists is two columns: how many each has, and all of them one after another.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from aotcli.analysis.report import Corner, FrontPoint, StepReport
from aotcli.render.report.changes import changes_document
from aotcli.render.report.memory import memory_document
from aotcli.render.report.nodes import nodes_document
from aotcli.render.report.picture import picture_document
from aotcli.render.report.rollups import rollups_document
from aotcli.render.report.saved import saved_document
from aotcli.render.report.strings import Strings
from aotcli.render.report.verdict import verdict_document

SCHEMA = "aotcli.report"
SCHEMA_VERSION = "1.0"


def report_document(report: StepReport) -> dict[str, Any]:
    """The whole report as plain data."""
    strings = Strings()
    regions = [_region(report, place, strings) for place in range(len(report.regions))]
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict_document(report),
        "regions": regions,
        "trade_off": _trade_off(report),
        "changes": changes_document(report),
        "strings": strings.texts,
    }


def _region(report: StepReport, place: int, strings: Strings) -> dict[str, Any]:
    region = report.regions[place]
    return {
        "name": region.graph.name,
        "fingerprint": region.graph.fingerprint,
        "has_backward": region.graph.has_backward,
        "saved_bytes": region.partition.saved_bytes,
        "nodes": nodes_document(region, strings),
        "saved": saved_document(region, strings),
        "memory": memory_document(region),
        **rollups_document(region, strings, with_source=report.with_source),
        "picture": picture_document(report, place, strings),
    }


def _trade_off(report: StepReport) -> dict[str, Any] | None:
    """Corners and points, each with the nodes that it saves: `saved` has a list of lists for each region."""
    found = report.trade_off
    if found is None:
        return None
    return {
        "unit": found.unit,
        "estimate": found.estimate,
        "corners": _columns(report, found.corners, ("saved_bytes", "cost", "arguments")),
        "points": _columns(report, found.points, _POINT),
    }


_POINT = tuple(field.name for field in dataclasses.fields(FrontPoint) if field.name != "saved")


def _columns(
    report: StepReport, rows: Sequence[Corner] | Sequence[FrontPoint], columns: Sequence[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in columns}
    saved: list[dict[str, list[int]]] = []
    for place, region in enumerate(report.regions):
        index = region.graph.index
        lists = [[index[name] for name in row.saved[place] if name in index] for row in rows]
        saved.append(
            {"nodes": [node for each in lists for node in each], "nodes_counts": [len(each) for each in lists]}
        )
    return {**found, "saved": saved}


def document_text(document: dict[str, Any]) -> str:
    """A document as JSON that may stand in a script element: no ``<`` in it, so nothing in it can end the element."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
