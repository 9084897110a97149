"""Where the predicted peak of a plan lies: which op, in which module, in which half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.liveness import simulate
from aotcli.analysis.op_names import node_label
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition


@dataclass(frozen=True, slots=True)
class PeakPlace:
    """The op during which most bytes are live."""

    what: str
    module: str | None
    backward: bool


def locate_peak(graph: JointGraph, partition: Partition) -> PeakPlace | None:
    """The place of a partition's peak; None where nothing runs. Cuts the graph again."""
    timeline = simulate(graph, cut(graph, decision_of(partition)))
    if timeline.peak_name is None:
        return None
    node = graph[timeline.peak_name]
    return PeakPlace(node_label(graph, node), node.module, timeline.peak_in_backward)


def locate_step_peak(graphs: Sequence[JointGraph], partitions: Sequence[Partition]) -> PeakPlace | None:
    """The place of the largest peak of several regions."""
    pairs = list(zip(graphs, partitions, strict=True))
    if not pairs:
        return None
    return locate_peak(*max(pairs, key=lambda pair: pair[1].peak_bytes))
