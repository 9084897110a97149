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
from aotcli.analysis.obligations import Obligations
from aotcli.analysis.replay import is_worth_replaying
from aotcli.analysis.roles import classify
from aotcli.errors import PlanImpossibleError
from aotcli.ir.joint import JointGraph, Node, Tag, arg_refs
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.strategies._contract import Strategy


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
        self._keep = keep
        self._roles = classify(graph)
        self._obligations = Obligations(graph, self._roles, is_worth_replaying if replay_random else _never)
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
        reason = self._obligations.reason(position)
        if reason is not None and isinstance(node.value, tuple):
            raise PlanImpossibleError(
                f"{node.name} ({node.target}) can be neither saved nor recomputed",
                why=f"it is a tuple that the backward reads whole, and it must be saved: {reason.text}",
                fix="report it with the record (aotcli trace -o)",
            )
        return reason


def _never(_graph: JointGraph, _node: Node) -> bool:
    return False


def _referenced(graph: JointGraph) -> list[str]:
    """Names that the backward returns."""
    return list(dict.fromkeys(name for arg in graph.backward_outputs for name in arg_refs(arg)))
