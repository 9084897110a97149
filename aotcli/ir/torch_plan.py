"""PyTorch's own decision, as a record holds it, as a decision about the record's graphs."""

from __future__ import annotations

from aotcli.errors import RecordError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Reason
from aotcli.ir.trace import TorchRegion, Trace

_REASON = Reason("torch", "torch saves it")


def decision_of_torch(graph: JointGraph, region: TorchRegion) -> Decision:
    """What PyTorch decided about `graph`. Raises StrategyError where it failed."""
    if region.failure:
        raise StrategyError(
            f"the record holds no decision of PyTorch for {graph.name}",
            why=region.failure,
            fix="compare by a strategy of aotcli instead: --strategy mincut",
        )
    return Decision(
        saved=tuple((name, _REASON) for name in region.saved),
        replaced=dict(region.replaced),
        keep_order=region.keep_order,
        drop_dead_collectives=region.drop_dead_collectives,
        notes=region.notes,
    )


def check_torch_decision(trace: Trace) -> None:
    """Raises RecordError where the decision is not about the record's graphs."""
    if trace.torch_decision and len(trace.torch_decision) != len(trace.regions):
        raise RecordError(
            "the record is damaged at torch_decision",
            why="it has another number of regions",
            fix="trace the model again",
        )
    for position, region in enumerate(trace.torch_decision):
        graph = trace.regions[position]
        names = [*region.saved, *(name for pair in region.replaced for name in pair)]
        unknown = next((name for name in names if name not in graph.index), None)
        if unknown is not None:
            raise RecordError(
                f"the record is damaged at torch_decision[{position}]",
                why=f"it names {unknown!r}, which {graph.name} does not have",
                fix="trace the model again",
            )
