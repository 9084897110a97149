"""The report as one HTML file that loads nothing: style, script and data stand in it, and its policy forbids network.

The policy names the style and the script by their hashes, so nothing else in the file can run, whatever a name in the
data says. The data itself is JSON in which no ``<`` occurs.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from string import Template

from aotcli.analysis.report import StepReport
from aotcli.render.page import plain
from aotcli.render.partition_text import eager_text
from aotcli.render.report.document import document_text, report_document
from aotcli.render.units import bytes_text, plural

STYLES = ("theme", "layout", "tables", "widgets", "print")
SCRIPTS = (
    "units",
    "dom",
    "data",
    "state",
    "verdict",
    "saved",
    "rollups",
    "memory",
    "memory_paint",
    "graph_model",
    "graph_links",
    "graph_paint",
    "graph_view",
    "graph_input",
    "inspector",
    "search",
    "tradeoff",
    "changes",
    "keys",
    "main",
)


def render_report_html(report: StepReport, version: str) -> str:
    """The whole file. Starts with the mark that tells aotcli's own files from others. `version` is aotcli's."""
    style, script = style_text(), script_text()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    page = Template(_read("template.html")).substitute(
        policy=policy,
        version=html.escape(version),
        title=html.escape(f"{plain(report.trace.model.name)} · {plain(report.plan.label)} · aotcli"),
        summary=html.escape(summary_text(report)),
        style=style,
        script=script,
        data=document_text(report_document(report)),
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may hold what no file can


def summary_text(report: StepReport) -> str:
    """The verdict in a sentence, for readers without a script."""
    trace, plan = report.trace, report.plan
    if not any(graph.has_backward for graph in trace.regions):
        return f"{plain(trace.model.name)} has no backward: nothing is saved."
    saved = f"{bytes_text(plan.saved_bytes)} in {plural(plan.saved_tensors, 'tensor')}"
    return f"{plain(trace.model.name)}, {plain(plan.label)}: saved for the backward {saved}; {eager_text(trace, plan)}."


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


@cache
def style_text() -> str:
    """All style sheets, one after another."""
    return "".join(f"\n{_read(f'style/{name}.css')}" for name in STYLES)


@cache
def script_text() -> str:
    """All script files as one: they share one scope, which nothing outside sees."""
    parts = "".join(f"\n{_read(f'script/{name}.js')}" for name in SCRIPTS)
    return f'\n(() => {{\n"use strict";\n{parts}\n}})();\n'


def _read(name: str) -> str:
    return files("aotcli.render.report").joinpath(name).read_text(encoding="utf-8")
