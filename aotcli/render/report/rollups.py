"""Saved bytes and recompute cost by module and by source line, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotcli.analysis.layers import module_label
from aotcli.analysis.report import RegionReport
from aotcli.analysis.rollup import ModuleRow, Sums
from aotcli.render.report.strings import Strings

_SUMS = ("saved_bytes", "saved_tensors", "recomputed_ops", "recompute_flops", "moved_bytes", "forward_flops")


def rollups_document(region: RegionReport, strings: Strings, *, with_source: bool) -> dict[str, Any]:
    """`modules` row by row as they are, `layers` with equal layers together, `lines`; source text where asked for."""
    rollup = region.rollup
    lines = [row.source for row in rollup.lines]
    return {
        "modules": _modules(rollup.modules, strings),
        "layers": _modules(rollup.layers, strings),
        "lines": {
            "line": [strings.number(line) for line in lines],
            "code": [strings.number(row.code) if with_source else -1 for row in rollup.lines],
            **_sums([row.sums for row in rollup.lines]),
        },
    }


def _modules(rows: Sequence[ModuleRow], strings: Strings) -> dict[str, Any]:
    return {
        "path": [strings.number(row.path) for row in rows],
        "label": [strings.number(module_label(row.path)) for row in rows],
        "module_type": [strings.number(row.module_type) for row in rows],
        "depth": [row.depth for row in rows],
        "parent": [row.parent for row in rows],
        "count": [row.count for row in rows],
        **_sums([row.sums for row in rows]),
    }


def _sums(sums: Sequence[Sums]) -> dict[str, Any]:
    return {name: [getattr(each, name) for each in sums] for name in _SUMS}
