"""What is live when: every allocation of a step with the ops between which it lives, and what it is for.

The walk is that of aotcli/analysis/liveness.py; the bytes of all allocations that live at a step add up to what its
timeline says there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from aotcli.analysis.cut import Halves
from aotcli.analysis.liveness import Heap, Runs, Storages, Timeline, replayed_states, run_halves
from aotcli.ir.joint import JointGraph, NodeKind, arg_refs


class Use(StrEnum):
    """What an allocation is for; the first that holds."""

    RESULT = "result"  # returned by the forward
    SAVED = "saved"  # handed from forward to backward
    GRADIENT = "gradient"  # returned by the backward
    RECOMPUTED = "recomputed"  # made again in the backward
    TANGENT = "tangent"  # what the backward is given
    RANDOM_STATE = "random state"  # of a random op that draws again in the backward
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Allocation:
    """`nbytes` that live from step `born` to step `dies`, both included, in the order of `Timeline.names`.

    `name` is the node that made them.
    """

    name: str
    nbytes: int
    born: int
    dies: int
    use: Use


@dataclass(frozen=True)
class Lifetimes:
    """A step's timeline, and every allocation of more than nothing in it, in the order of birth."""

    timeline: Timeline
    allocations: tuple[Allocation, ...]

    def live_at(self, step: int) -> list[Allocation]:
        """What is live at a step, largest first."""
        found = [each for each in self.allocations if each.born <= step <= each.dies]
        return sorted(found, key=lambda each: (-each.nbytes, each.born))


def trace_lifetimes(graph: JointGraph, halves: Halves) -> Lifetimes:
    """Run both halves on paper and note when each allocation comes and goes."""
    states = replayed_states(halves)
    heap = _Recorder(halves, states)
    runs = run_halves(heap, graph, halves)
    uses = _uses(graph, halves, runs)
    tangents = {
        allocation: name
        for name, storages in runs.backward.items()
        if name in graph.index and graph[name].kind is NodeKind.TANGENT
        for allocation in storages.values()
    }
    names = runs.timeline.names
    recomputed = set(names[: runs.timeline.forward_steps]) & set(names[runs.timeline.forward_steps :])
    found: list[Allocation] = []
    for allocation, born in heap.born.items():
        nbytes, dies = heap.nbytes_of(allocation), heap.died.get(allocation, len(names) - 1)
        if not nbytes or dies < born or born >= len(names):
            continue
        maker = tangents.get(allocation, names[born])
        use = uses.get(allocation, Use.TEMPORARY)
        if use is Use.TEMPORARY and allocation in tangents:
            use = Use.TANGENT
        elif use is Use.TEMPORARY and born >= runs.timeline.forward_steps and maker in recomputed:
            use = Use.RECOMPUTED
        found.append(Allocation(maker, nbytes, born, dies, use))
    found += [
        Allocation(name, states[name], *steps, Use.RANDOM_STATE) for name, steps in heap.states.items() if states[name]
    ]
    return Lifetimes(runs.timeline, tuple(sorted(found, key=lambda each: (each.born, each.dies))))


def _uses(graph: JointGraph, halves: Halves, runs: Runs) -> dict[int, Use]:
    """The use of every allocation that outlives its half."""
    results = [name for arg in graph.forward_outputs for name in arg_refs(arg)]
    gradients = [name for arg in halves.backward.outputs for name in arg_refs(arg)]
    if not graph.has_backward:
        results = [name for arg in halves.forward.outputs for name in arg_refs(arg)]
    found: dict[int, Use] = {}
    for use, names, values in (
        (Use.GRADIENT, gradients, runs.backward),
        (Use.SAVED, halves.saved, runs.forward),
        (Use.RESULT, results, runs.forward),
    ):
        for allocation in _allocations(names, values):
            found[allocation] = use
    return found


def _allocations(names: Iterable[str], values: Mapping[str, Storages]) -> list[int]:
    return [allocation for name in names if name in values for allocation in values[name].values()]


class _Recorder(Heap):
    """A heap that remembers at which step each allocation was first held and last released."""

    def __init__(self, halves: Halves, states: Mapping[str, int]) -> None:
        super().__init__(halves.merged_storages, {}, states)
        self.born: dict[int, int] = {}
        self.died: dict[int, int] = {}
        self.states: dict[str, tuple[int, int]] = {}
        self._replayed = states

    def hold(self, storages: Storages) -> None:
        for allocation in storages.values():
            # The op that runs is not in `names` yet, so their number is its step.
            self.born.setdefault(allocation, len(self.names))
            self.died.pop(allocation, None)
        super().hold(storages)

    def release(self, storages: Storages) -> None:
        super().release(storages)
        for allocation in storages.values():
            if not self.is_held(allocation):
                self.died[allocation] = len(self.names) - 1

    def save_state(self, name: str) -> None:
        super().save_state(name)
        if name in self._replayed:
            step = len(self.names)
            first = self.states.get(name)
            # Where it is drawn again the state is put back: it is live up to the step before.
            self.states[name] = (step, step) if first is None else (first[0], step - 1)
