"""How many bytes are live while forward and backward run: a simulation over storages, without torch.

Each op first allocates what it returns, then releases what was read for the last time: arguments are boxed, so a saved
value dies at its last use in the backward. Views share the storage of what they look at. Parameters, buffers and inputs
are not counted; what the step returns (forward outputs, gradients) stays to the end. A random op that draws again in
the backward keeps its state until then. Scratch memory inside ops is added where the caller knows it
(aotcli/analysis/workspace.py); without it the peak is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aotcli.analysis.cut import Half, Halves
from aotcli.analysis.replay import state_nbytes
from aotcli.ir.joint import Arg, JointGraph, NodeKind, Tag, arg_refs
from aotcli.ir.tensor import Value, tensor_leaves

Storages = Mapping[int, int]
"""For one value: storage number in the record -> allocation of this simulation."""


@dataclass(frozen=True)
class Timeline:
    """Live bytes above parameters and inputs while each op runs, in run order, forward then backward.

    `names[i]` is the op during which `live_bytes[i]` were live; the first `forward_steps` ops are the forward's.
    `held_bytes` is what is live between the two: saved activations and the forward's outputs. `peak_at` is the position
    of the (first) peak, -1 where nothing runs.
    """

    names: tuple[str, ...]
    live_bytes: tuple[int, ...]
    forward_steps: int
    held_bytes: int
    peak_bytes: int
    peak_at: int

    @property
    def peak_name(self) -> str | None:
        """The op at the peak."""
        return self.names[self.peak_at] if self.peak_at >= 0 else None

    @property
    def peak_in_backward(self) -> bool:
        return self.peak_at >= self.forward_steps


def simulate(graph: JointGraph, halves: Halves, scratch: Mapping[str, int] = MappingProxyType({})) -> Timeline:
    """Run both halves of `graph` on paper. `scratch` is what ops allocate and free as they run, by name, in bytes."""
    heap = Heap(halves.merged_storages, scratch, replayed_states(halves))
    return run_halves(heap, graph, halves).timeline


@dataclass(frozen=True)
class Runs:
    """Both halves run on paper: the timeline, and the allocations behind every value of each half."""

    timeline: Timeline
    forward: Mapping[str, Storages]
    backward: Mapping[str, Storages]


def run_halves(heap: Heap, graph: JointGraph, halves: Halves) -> Runs:
    """Run the forward on `heap`, hand over what is saved, run the backward."""
    inputs = {name: heap.place(graph[name].value, {}, counted=False) for name in halves.forward.inputs}
    forward = heap.run(halves.forward, inputs)
    held_bytes, steps = heap.live_bytes, len(heap.names)
    given: dict[str, Storages] = {}
    for name in halves.backward.inputs:
        if name in forward:
            given[name] = forward[name]
        else:
            node = graph[name]
            given[name] = heap.place(node.value, {}, counted=node.kind is NodeKind.TANGENT)
    for name in halves.saved:  # the forward held them until here; from now on their last reader frees them
        heap.release(forward[name])
    backward = heap.run(halves.backward, given)
    peak_at = max(range(len(heap.names)), key=heap.timeline.__getitem__) if heap.names else -1
    peak = heap.timeline[peak_at] if heap.names else 0
    timeline = Timeline(tuple(heap.names), tuple(heap.timeline), steps, held_bytes, peak, peak_at)
    return Runs(timeline, forward, backward)


class Heap:
    """Allocations with reference counts; a count falls to zero when nothing that still runs will read it."""

    def __init__(
        self, merged_storages: Mapping[int, int], scratch: Mapping[str, int], states: Mapping[str, int]
    ) -> None:
        self.live_bytes = 0
        self.names: list[str] = []
        self.timeline: list[int] = []
        self._scratch = scratch
        self._states = dict(states)
        self._saved_states: set[str] = set()
        self._merged = merged_storages
        self._nbytes: list[int] = []
        self._holders: list[int] = []

    def place(self, value: Value, sources: Storages, *, counted: bool = True) -> dict[int, int]:
        """The allocations behind a value: those of `sources` where it is a view of them, else new ones."""
        found: dict[int, int] = {}
        for leaf in tensor_leaves(value):
            # A tensor without a storage is an allocation of its own, under a number that no storage has.
            storage = self._merged.get(leaf.storage, leaf.storage) if leaf.storage >= 0 else -1 - len(found)
            if storage in found:
                continue
            if storage in sources and storage >= 0:
                found[storage] = sources[storage]
                continue
            found[storage] = len(self._nbytes)
            self._nbytes.append(leaf.storage_nbytes if counted else 0)
            self._holders.append(0)
        return found

    def nbytes_of(self, allocation: int) -> int:
        return self._nbytes[allocation]

    def is_held(self, allocation: int) -> bool:
        return self._holders[allocation] > 0

    def hold(self, storages: Storages) -> None:
        for allocation in storages.values():
            if self._holders[allocation] == 0:
                self.live_bytes += self._nbytes[allocation]
            self._holders[allocation] += 1

    def release(self, storages: Storages) -> None:
        for allocation in storages.values():
            self._holders[allocation] -= 1
            if self._holders[allocation] == 0:
                self.live_bytes -= self._nbytes[allocation]

    def save_state(self, name: str) -> None:
        """Keep the state of a replayed random op from its run in the forward to its run in the backward."""
        if name not in self._states:
            return
        if name in self._saved_states:
            self.live_bytes -= self._states[name]
        else:
            self._saved_states.add(name)
            self.live_bytes += self._states[name]

    def run(self, half: Half, given: Mapping[str, Storages]) -> dict[str, Storages]:
        """Run one half; what it returns stays held. Gives the allocations of every value."""
        values = dict(given)
        for storages in values.values():
            self.hold(storages)
        last = _last_reads(half)
        for name in last.get(-1, ()):
            self.release(values[name])
        for step, node in enumerate(half.nodes):
            sources: dict[int, int] = {}
            for name in node.refs:
                sources.update(values[name])
            values[node.name] = self.place(node.value, sources)
            self.hold(values[node.name])
            self.save_state(node.name)
            self.names.append(node.name)
            self.timeline.append(self.live_bytes + self._scratch.get(node.name, 0))
            for name in last.get(step, ()):
                self.release(values[name])
        for name in _names(half.outputs):
            self.hold(values[name])
        for name in last.get(len(half.nodes), ()):
            self.release(values[name])
        return values


def replayed_states(halves: Halves) -> dict[str, int]:
    """Bytes of the state of each random op that runs in both halves."""
    forward = {node.name for node in halves.forward.nodes if Tag.RANDOM in node.tags}
    return {node.name: state_nbytes(node) for node in halves.backward.nodes if node.name in forward}


def _names(outputs: Iterable[Arg]) -> list[str]:
    return [name for arg in outputs for name in arg_refs(arg)]


def _last_reads(half: Half) -> dict[int, list[str]]:
    """Values by the step that reads them last: -1 for inputs that nothing reads, the number of nodes for outputs."""
    last: dict[str, int] = dict.fromkeys(half.inputs, -1)
    for step, node in enumerate(half.nodes):
        last[node.name] = step
        for name in node.refs:
            last[name] = step
    last.update(dict.fromkeys(_names(half.outputs), len(half.nodes)))
    by_step: dict[int, list[str]] = {}
    for name, step in last.items():
        by_step.setdefault(step, []).append(name)
    return by_step
