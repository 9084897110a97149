"""Phrases that several rules use."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.op_names import node_label, op_label, storage_maker
from aotcli.ir.joint import Node, NodeKind

_SHORT_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64"}
_GIVEN = {NodeKind.PARAM: "parameter", NodeKind.BUFFER: "buffer", NodeKind.INPUT: "input"}
_MOST_OPS = 4


def dtype_word(dtype: str) -> str:
    """``bf16`` of ``bfloat16``; names that have no short form stay."""
    return _SHORT_DTYPES.get(dtype, dtype)


def ops_phrase(ops: Sequence[Node]) -> str:
    """``mul, mul``; ``mul, add, mul and 3 more``."""
    labels = [op_label(node.target) for node in ops]
    if len(labels) <= _MOST_OPS:
        return ", ".join(labels)
    return f"{', '.join(labels[: _MOST_OPS - 1])} and {len(labels) - _MOST_OPS + 1} more"


def value_phrase(region: PlannedRegion, node: Node, seen_from: str | None) -> str:
    """``mul``, with its module where that is neither `seen_from` nor around it: ``addmm of h.*.fc``; ``parameter
    weight``."""
    maker = storage_maker(region.graph, node.name)
    label = node_label(region.graph, maker)
    if maker.kind in _GIVEN:
        return f"{_GIVEN[maker.kind]} {label.rpartition('.')[2]}"
    if not maker.module or (seen_from or "").startswith(maker.module):
        return label
    return f"{label} of {layer_pattern(maker.module)}"
