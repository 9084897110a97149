"""Between which bounds the peak of a step of several regions lies.

The forwards run one after another, then the backwards in the opposite order. While region r runs, live bytes are its
own timeline, and what the others hold: every earlier region the S_j bytes that it saved, and at most its whole held_j,
which adds outputs that a later region or the user's code may still read; during backwards, every later region at most
the gradients G_j that it made and the outputs U_j = held_j − S_j.

    forward of r    Σ_{j<r} S_j + live_r          ≤  live  ≤  Σ_{j<r} held_j + live_r
    backward of r   Σ_{j<r} S_j + live_r − U_r    ≤  live  ≤  Σ_{j<r} held_j + live_r + Σ_{j>r} (G_j + U_j)

What the user's code computes between regions is in neither bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.liveness import Timeline
from aotcli.ir.joint import JointGraph, NodeKind, arg_refs
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import tensor_leaves


@dataclass(frozen=True, slots=True)
class RegionMemory:
    """One region of a step: its timeline, the bytes that it saves, and those of the gradients that it returns."""

    timeline: Timeline
    saved_bytes: int
    gradient_bytes: int

    @property
    def unsaved_output_bytes(self) -> int:
        """Bytes of the forward's outputs that the backward does not read."""
        return self.timeline.held_bytes - self.saved_bytes


@dataclass(frozen=True, slots=True)
class PeakBounds:
    """Live bytes above parameters and inputs: the peak is at least `low_bytes` and at most `high_bytes`."""

    low_bytes: int
    high_bytes: int


def region_memory(graph: JointGraph, partition: Partition, timeline: Timeline) -> RegionMemory:
    """What `bound_step_peak` needs to know of a region, from its plan and the timeline of that plan."""
    saved = partition.saved_bytes + partition.saved_output_bytes + partition.random_state_bytes
    storages: dict[int, int] = {}
    for name in (name for arg in graph.backward_outputs for name in arg_refs(arg)):
        if graph[name].kind is NodeKind.OP:
            for number, leaf in enumerate(tensor_leaves(graph[name].value)):
                storages[leaf.storage if leaf.storage >= 0 else -1 - number] = leaf.storage_nbytes
    return RegionMemory(timeline, saved, sum(storages.values()))


def bound_step_peak(regions: Sequence[RegionMemory]) -> PeakBounds:
    """The bounds of the module's docstring, over all positions; `regions` in the order of their forwards."""
    low = high = 0
    saved_before = held_before = 0
    made_later = sum(each.gradient_bytes + each.unsaved_output_bytes for each in regions)
    for each in regions:
        made_later -= each.gradient_bytes + each.unsaved_output_bytes
        steps = each.timeline.forward_steps
        forward = max(each.timeline.live_bytes[:steps], default=0)
        backward = max(each.timeline.live_bytes[steps:], default=0)
        low = max(low, saved_before + forward, saved_before + backward - each.unsaved_output_bytes)
        high = max(high, held_before + forward, held_before + backward + made_later)
        saved_before += each.saved_bytes
        held_before += each.timeline.held_bytes
    return PeakBounds(low, high)
