"""What to ask about first: the largest saved value of a plan, as a pattern of `aotcli explain`."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.layers import fold_saved
from aotcli.analysis.op_names import storage_maker
from aotcli.analysis.patterns import op_names
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition


def explain_hint(graphs: Sequence[JointGraph], partitions: Sequence[Partition]) -> str:
    """``head.mm``: module and op of the first of the largest saved values; its name where it has no module to go by;
    "" where no activation is saved."""
    pairs = zip(graphs, partitions, strict=True)
    rows = [(graph, rows[0]) for graph, partition in pairs if (rows := fold_saved(graph, partition.saved))]
    if not rows:
        return ""
    graph, row = max(rows, key=lambda each: each[1].nbytes)
    maker = storage_maker(graph, row.values[0].name)
    return f"{maker.module}.{op_names(graph, maker)[2]}" if maker.module else maker.name
