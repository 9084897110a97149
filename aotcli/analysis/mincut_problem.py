"""One instance of the min-cut heuristic: the graph, its roles, its op sets, and the options in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from aotcli.analysis.mincut_fusion import Fusion, fusion
from aotcli.analysis.mincut_mutation import MutatedReads, mutated_reads
from aotcli.analysis.mincut_tags import Policies, checkpoint_policies
from aotcli.analysis.mincut_wishes import Wished, place_wishes
from aotcli.analysis.opsets import OpFacts, op_facts
from aotcli.analysis.roles import Roles, classify
from aotcli.analysis.wishes import NO_WISHES, Wishes
from aotcli.ir.joint import JointGraph
from aotcli.ir.tensor import torch_nbytes


class Rule(StrEnum):
    """Why a value is not recomputed, or why it is saved though it could be."""

    PRIMAL = "primal"
    SEED = "seed"
    MUTATED = "mutated input"
    MUST_SAVE = "must save"
    ALLOWLIST = "allowlist"
    RANDOM = "random"
    COMPUTE_INTENSIVE = "compute intensive"
    NON_BUILTIN = "non-builtin"
    MATERIALIZED = "materialized in backward"
    DISTANCE = "distance"
    REDUCTION = "reduction"
    FAR_APART = "used far apart"
    LONG_CHAIN = "long fusible chain"
    NEEDED = "needed by backward"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Heuristic:
    """Options of the heuristic; `aggressive` recomputes whatever is neither random nor compute intensive."""

    op_set: str = "inductor"
    recomputable_ops: str = ""
    aggressive: bool = False
    max_distance: int = 1000
    ban_non_builtin: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What the rules look at. `sizes` are bytes as torch counts them, by position; `ignored` are rules to leave out;
    `wished` is what a user asks for beside the graph's annotations."""

    graph: JointGraph
    heuristic: Heuristic
    roles: Roles
    ops: OpFacts
    fusion: Fusion
    policies: Policies
    mutated: MutatedReads
    sizes: list[int]
    ignored: frozenset[tuple[int, str]]
    wished: Wished = field(default_factory=Wished)

    def applies(self, position: int, rule: Rule) -> bool:
        return (position, rule) not in self.ignored


def pose(
    graph: JointGraph, heuristic: Heuristic, ignored: Iterable[tuple[str, str]] = (), wishes: Wishes = NO_WISHES
) -> Problem:
    """The problem for a graph without dead nodes and duplicates; `wishes` name nodes of it.

    `ignored` are (node, rule) pairs to leave out, to see what a stated reason was worth; a ban that is stated for a
    view or a part of a tuple is that of what it was taken from. Leaving out `cut` or `needed by backward` forbids
    saving.
    """
    roles = classify(graph)
    ops = op_facts(graph, heuristic.op_set, heuristic.recomputable_ops)
    mutated = mutated_reads(graph, roles)
    policies = checkpoint_policies(graph)
    wished = place_wishes(graph, policies, mutated, wishes)
    without = frozenset(pair for name, rule in ignored for pair in _with_origins(graph, ops, name, rule))
    for position in mutated.source:
        # A policy cannot make a recomputation right that reads a changed input.
        policies.must_recompute[position] = False
    for position, rule in without:
        if rule == Rule.MUST_SAVE:
            policies.must_save[position] = False
    return Problem(
        graph=graph,
        heuristic=heuristic,
        roles=roles,
        ops=ops,
        fusion=fusion(graph, ops),
        policies=policies,
        mutated=mutated,
        sizes=[torch_nbytes(node.value) for node in graph.nodes],
        ignored=without,
        wished=wished,
    )


def taken_from(graph: JointGraph, ops: OpFacts, position: int) -> int | None:
    """What a view or a part of a tuple was taken from; None for any other node."""
    if not ops.view[position] and graph.nodes[position].target != "operator.getitem":
        return None
    inputs = graph.inputs_of[position]
    return inputs[0] if inputs else None


def _with_origins(graph: JointGraph, ops: OpFacts, name: str, rule: str) -> list[tuple[int, str]]:
    pairs: list[tuple[int, str]] = []
    position: int | None = graph.index.get(name)
    while position is not None:
        pairs.append((position, rule))
        position = None if rule in (Rule.CUT, Rule.NEEDED) else taken_from(graph, ops, position)
    return pairs
