"""The saved values of a region: one row each, and folded by repeated layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotcli.analysis.layers import SavedRow, fold_saved, module_label
from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.analysis.report import RegionReport
from aotcli.ir.partition import Category, SavedKind
from aotcli.render.report.nodes import value_text
from aotcli.render.report.strings import Strings
from aotcli.render.units import dtype_text, shape_text

_ELSEWHERE = tuple(category for category in Category if category is not Category.ACTIVATION)


def saved_document(region: RegionReport, strings: Strings) -> dict[str, Any]:
    """`values` are saved values in the forward's order; `rows` fold them: each lists its values by number."""
    graph = region.graph
    values = sorted(region.partition.saved, key=lambda value: graph.index[value.name])
    makers = [storage_maker(graph, value.name) for value in values]
    count = strings.number
    number = {value.name: place for place, value in enumerate(values)}
    users = [[graph.index[user] for user in value.users if user in graph.index] for value in values]
    return {
        "values": {
            "node": [graph.index[value.name] for value in values],
            "nbytes": [value.nbytes for value in values],
            "category": [value.category.value for value in values],
            "kind": [value.kind.value for value in values],
            "storage": [value.storage for value in values],
            "what": [count(node_label(graph, maker)) for maker in makers],
            "maker": [graph.index[maker.name] for maker in makers],
            "module": [
                count(module_label(value.module if maker.module is None else maker.module))
                for value, maker in zip(values, makers, strict=True)
            ],
            "shape": [count(value_text(value.value)) for value in values],
            "rule": [count(value.reason.rule) for value in values],
            "reason": [count(value.reason.text) for value in values],
            "line": [count(value.source) for value in values],
            "users": [user for each in users for user in each],
            "user_counts": [len(each) for each in users],
        },
        "rows": _rows([*fold_saved(graph, values), *_kept(region)], number, strings),
    }


def _kept(region: RegionReport) -> list[SavedRow]:
    """Rows of what is in memory anyway."""
    tensors = [value for value in region.partition.saved if value.kind is SavedKind.TENSOR]
    return [row for category in _ELSEWHERE for row in fold_saved(region.graph, tensors, (category,))]


def _rows(rows: Sequence[SavedRow], number: dict[str, int], strings: Strings) -> dict[str, Any]:
    count = strings.number
    return {
        "nbytes": [row.nbytes for row in rows],
        "count": [row.count for row in rows],
        "category": [row.values[0].category.value for row in rows],
        "module": [count(row.module) for row in rows],
        "what": [count(row.what) for row in rows],
        "shape": [count(f"{dtype_text(row.dtype)} {shape_text(row.shape)}") for row in rows],
        "rule": [count(row.rule) for row in rows],
        "reason": [count(row.reason) for row in rows],
        "line": [count(row.source) for row in rows],
        "lines": [row.sources for row in rows],
        "values": [number[value.name] for row in rows for value in row.values],
        "value_counts": [len(row.values) for row in rows],
    }
