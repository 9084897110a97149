"""The graph's picture: boxes, links and frames with their coordinates."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.report import StepReport
from aotcli.render.report.strings import Strings


def picture_document(report: StepReport, place: int, strings: Strings) -> dict[str, Any]:
    return {}
