"""Wishes on the min-cut problem: what a user asks for beside the graph's own annotations, and above them.

SAVE falls on the op that makes the memory: it must not run again. RECOMPUTE bars all values on that memory from the
cut, and lifts the bans on its op, unless the op must not run again at all. PyTorch goes further for a value that
checkpointing tags MUST_RECOMPUTE: it computes it in the backward even if nothing there needs it. Here it may be left
out, which is what the user is after, and never costs more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aotcli.analysis.mincut_mutation import MutatedReads
from aotcli.analysis.mincut_tags import BLOCK_BOUNDARY, BLOCK_INPUT, CHECKPOINT_POLICY, COLLECTIVE, Policies
from aotcli.analysis.rerun import Rerun
from aotcli.analysis.wishes import Made, Wishes, made_values
from aotcli.ir.joint import JointGraph
from aotcli.ir.policy import PolicyRule

_MAY_BE_OVERRULED = frozenset({CHECKPOINT_POLICY, BLOCK_BOUNDARY, BLOCK_INPUT, COLLECTIVE})


@dataclass(frozen=True, slots=True)
class Wished:
    """Wishes by position: ops that must not run again, values that must not be saved, nodes whose bans are lifted.
    `refused` are ops that must not run again although a wish would need it, with the reason."""

    kept: dict[int, PolicyRule] = field(default_factory=dict[int, PolicyRule])
    unsaveable: dict[int, PolicyRule] = field(default_factory=dict[int, PolicyRule])
    released: frozenset[int] = frozenset()
    refused: dict[int, str] = field(default_factory=dict[int, str])


def place_wishes(graph: JointGraph, policies: Policies, mutated: MutatedReads, wishes: Wishes) -> Wished:
    """The wishes of `graph` by position; `policies` are changed accordingly."""
    if not wishes:
        return Wished()
    rerun = Rerun(graph, mutated)
    unsaveable: dict[int, PolicyRule] = {}
    kept: dict[int, PolicyRule] = {}
    refused: dict[int, str] = {}
    released: set[int] = set()
    memory = made_values(graph)
    for made in memory:
        name = graph.nodes[made.maker].name
        if name in wishes.recompute:
            unsaveable.update(dict.fromkeys(made.members, wishes.recompute[name]))
            reason = _refusal(policies, rerun, made)
            if reason is None:
                # A view that torch does not list as one, `_unsafe_view`, has a ban of its own.
                released.update((made.op, *made.members))
                _forget(policies, made, saving=True)
            else:
                refused[made.op] = reason
        elif name in wishes.save:
            kept[made.op] = wishes.save[name]
    for op, rule in kept.items():
        policies.force(op, rule.label or str(rule))
    for made in memory:
        if made.op in kept and graph.nodes[made.maker].name not in wishes.recompute:
            # What does not run again gives none of its results again, whatever their tags say.
            _forget(policies, made, saving=False)
    return Wished(kept, unsaveable, frozenset(released - kept.keys()), refused)


def _refusal(policies: Policies, rerun: Rerun, made: Made) -> str | None:
    """Why the op behind some memory must not run again."""
    forbidden = rerun.forbidden(made.op)
    if forbidden is not None:
        return forbidden.text
    for position in (made.op, *made.members):
        if policies.must_save[position] and policies.cause[position] not in _MAY_BE_OVERRULED:
            return policies.cause[position]
    return None


def _forget(policies: Policies, made: Made, *, saving: bool) -> None:
    """Take back what the graph's own annotations ask for."""
    asked = policies.must_save if saving else policies.must_recompute
    for position in (made.op, *made.members):
        asked[position] = False
