"""PyTorch's own decision for what was captured: which values its min-cut partitioner saves, for a record to hold.

A record is planned without torch, and by whichever version of aotcli reads it. What PyTorch decided on the day of the
capture can only be written down then; with it, two records tell whether a new version of PyTorch changed the graph of
a model or what it decides about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotcli.analysis.assemble import assemble
from aotcli.capture import torch_private_split as private
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.reference import read_decision, run_partition_function
from aotcli.errors import AotcliError
from aotcli.ir.partition import Reason
from aotcli.ir.trace import TorchRegion

_LABEL = "PyTorch's partitioner"


def torch_decisions(regions: Sequence[LiveRegion]) -> tuple[TorchRegion, ...]:
    """PyTorch's decision for each region, under the activation memory budget that is set in this process."""
    return tuple(_decide(region) for region in regions)


def _decide(region: LiveRegion) -> TorchRegion:
    """One region. What PyTorch cannot split, or splits in a way that no set of saved values explains, is a failure in
    the record and none of the capture."""
    graph = region.graph
    empty = TorchRegion(budget=private.memory_budget())
    if not graph.has_backward:
        return empty
    try:
        split = run_partition_function(private.min_cut_partition_function(empty.budget), region, _LABEL)
        decision = read_decision(graph, split, Reason("torch", "torch saves it"), _LABEL)
        partition = assemble(graph, decision, strategy="torch")
    except AotcliError as error:
        return replace(empty, failure=f"{error.what}: {error.why}")
    return replace(
        empty,
        saved_bytes=partition.saved_bytes,
        saved=tuple(name for name, _ in decision.saved),
        replaced=tuple(sorted(decision.replaced.items())),
        keep_order=decision.keep_order,
        drop_dead_collectives=decision.drop_dead_collectives,
        notes=decision.notes,
    )
