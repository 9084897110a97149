"""What changed since another step."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.report import StepReport


def changes_document(report: StepReport) -> dict[str, Any] | None:
    return None
