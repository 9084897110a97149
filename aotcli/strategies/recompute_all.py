"""Save the inputs and what cannot be computed twice; recompute everything else.

The other end of the scale from save-all: the least activation memory at the price of about one more forward. Starting
from what the backward reads, the graph is walked back to values that must be saved: inputs, sizes, results of
effectful and collective ops, results that checkpointing asks to save, ops whose result depends on data in its shape,
and the first op after a read of an input that the step changes in place (rerun later, it would read the new value).
Random ops are rerun from their saved state where that weighs less than what they draw, and saved otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble, with_best_order
from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut_mutation import mutated_reads
from aotcli.analysis.mincut_tags import checkpoint_policies
from aotcli.analysis.replay import is_worth_replaying
from aotcli.analysis.rerun import Rerun
from aotcli.analysis.roles import classify
from aotcli.errors import PlanImpossibleError
from aotcli.ir.joint import JointGraph, NodeKind, Tag, arg_refs
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec
from aotcli.strategies._contract import Strategy

_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})
_GETITEM = "operator.getitem"


@dataclass(frozen=True)
class RecomputeAll(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "recompute-all"
    summary: ClassVar[str] = "save inputs and what cannot be computed twice, recompute everything else"

    cse: bool = field(default=True, metadata={"help": "merge common subexpressions first"})
    replay_random: bool = field(
        default=True,
        metadata={"help": "rerun random ops from a saved state, where that is smaller than what they draw"},
    )

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        decision = decide(graph, cse=self.cse, replay_random=self.replay_random)
        return assemble(graph, with_best_order(graph, decision), strategy=self.name, options=self.options)


def decide(
    graph: JointGraph,
    *,
    cse: bool = True,
    replay_random: bool = True,
    keep: Mapping[str, Reason] = MappingProxyType({}),
) -> Decision:
    """The smallest saved set that recomputation allows, with the values of `keep` saved in any case.

    Raises PlanImpossibleError where the backward reads a tuple that can be neither saved nor recomputed.
    """
    if not graph.has_backward:
        return Decision(saved=())
    cleaned, removed = eliminate_dead(graph)
    merged, replaced = eliminate_common(cleaned) if cse else (cleaned, {})
    walk = _Walk(merged, replay_random, {replaced.get(name, name): reason for name, reason in keep.items()})
    saved = walk.saved()
    return Decision(
        saved=tuple((merged.nodes[position].name, reason) for position, reason in sorted(saved.items())),
        replaced=replaced,
        removed=removed,
        notes=walk.notes(),
    )


class _Walk:
    """From the backward's reads to what must be saved."""

    def __init__(self, graph: JointGraph, replay_random: bool, keep: Mapping[str, Reason]) -> None:
        self._graph = graph
        self._replay_random = replay_random
        self._keep = keep
        self._roles = classify(graph)
        self._policies = checkpoint_policies(graph)
        self._mutated = mutated_reads(graph, self._roles)
        self._bases = self._bases_of_saved_views()
        self._rerun = Rerun(graph, self._mutated)
        self._replayed: list[str] = []

    def saved(self) -> dict[int, Reason]:
        """Saved positions with reasons."""
        graph, closure = self._graph, self._roles.tangents_closure
        found: dict[int, Reason] = {}
        pending = [graph.index[name] for name in _referenced(graph)]
        seen = set(pending)
        while pending:
            position = pending.pop()
            reason = None if closure[position] else self._kept(position) or self._must_save(position)
            if reason is not None:
                found[position] = reason
                continue
            if not closure[position] and Tag.RANDOM in graph.nodes[position].tags:
                self._replayed.append(graph.nodes[position].name)
            for source in graph.inputs_of[position]:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return found

    def notes(self) -> tuple[str, ...]:
        if not self._replayed:
            return ()
        count = len(self._replayed)
        return (f"{count} random op{'s draw' if count > 1 else ' draws'} again in the backward, from a saved state",)

    def _kept(self, position: int) -> Reason | None:
        """Why the caller wants a value to be saved. A tuple cannot be."""
        node = self._graph.nodes[position]
        return None if isinstance(node.value, tuple) else self._keep.get(node.name)

    def _must_save(self, position: int) -> Reason | None:
        """Why a value of the forward is saved; None where it is computed again."""
        node = self._graph.nodes[position]
        if node.kind is NodeKind.ATTR or node.kind in (NodeKind.TANGENT, NodeKind.BACKWARD_SEED):
            return None
        if isinstance(node.value, SymbolSpec) and (node.value.kind == "int" or node.is_placeholder):
            return Reason("size", "symbolic size")
        if node.is_placeholder:
            return Reason("primal", node.kind.value)
        if isinstance(node.value, OpaqueSpec):
            return Reason("opaque", "opaque object")
        reason = self._cannot_rerun(self._origin(position))
        if reason is not None and isinstance(node.value, tuple):
            raise PlanImpossibleError(
                f"{node.name} ({node.target}) can be neither saved nor recomputed",
                why=f"it is a tuple that the backward reads whole, and it must be saved: {reason.text}",
                fix="report it with the record (aotcli trace -o)",
            )
        return reason

    def _origin(self, position: int) -> int:
        """The op that makes a value: for an element of a tuple, the op that makes the tuple."""
        graph = self._graph
        while graph.nodes[position].target == _GETITEM and not self._policies.must_save[position]:
            position = graph.inputs_of[position][0]
        return position

    def _cannot_rerun(self, position: int) -> Reason | None:
        node = self._graph.nodes[position]
        must_recompute = self._policies.must_recompute[position]
        if position in self._mutated.banned:
            source = self._mutated.source[position]
            return Reason("mutated input", f"reads {source}, changed in place")
        if Tag.COLLECTIVE in node.tags and not must_recompute:
            return Reason("collective", "collective")
        if self._rerun.has_effect(position):
            return Reason("effect", "has an effect")
        if self._policies.must_save[position] and not node.tags & _VIEWS:
            return Reason("must save", self._policies.cause[position])
        if position in self._bases:
            return Reason("must save", f"base of {self._bases[position]}")
        if self._rerun.is_random(position) and not self._may_draw_again(position):
            return Reason("random", "random")
        if self._rerun.is_data_dependent(position):
            return Reason("data-dependent shape", "data-dependent shape")
        return None

    def _may_draw_again(self, position: int) -> bool:
        """Whether a random op may run in the backward: with its state, or there alone."""
        if self._policies.must_recompute[position] or self._roles.unclaimed[position]:
            return True
        return self._replay_random and is_worth_replaying(self._graph, self._graph.nodes[position])

    def _bases_of_saved_views(self) -> dict[int, str]:
        """Saving a view keeps what it looks at: the demand falls on the base."""
        graph = self._graph
        bases: dict[int, str] = {}
        for position, node in enumerate(graph.nodes):
            if self._policies.must_save[position] and node.tags & _VIEWS:
                base = position
                while graph.nodes[base].tags & _VIEWS and graph.inputs_of[base]:
                    base = graph.inputs_of[base][0]
                bases[self._origin(base)] = node.name
        return bases


def _referenced(graph: JointGraph) -> list[str]:
    """Names that the backward returns."""
    return list(dict.fromkeys(name for arg in graph.backward_outputs for name in arg_refs(arg)))
