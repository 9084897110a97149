"""Ours against PyTorch's, name by name."""

from __future__ import annotations

import math
from typing import Any

from evidence import MinCutEvidence, torch_min_cut_evidence

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic, Rule
from aotcli.analysis.roles import classify
from aotcli.capture.recorder import LiveRegion
from aotcli.ir.joint import JointGraph, NodeKind, Tag
from aotcli.ir.partition import Decision

TORCH_PHRASES = {
    Rule.PRIMAL: "primal input",
    Rule.SEED: "forward RNG seed",
    Rule.MUST_SAVE: "marked MUST_SAVE",
    Rule.ALLOWLIST: "not in recomputable allowlist",
    Rule.RANDOM: "random op",
    Rule.COMPUTE_INTENSIVE: "compute intensive op",
    Rule.NON_BUILTIN: "non-builtin op",
    Rule.MATERIALIZED: "materialized in backward",
    Rule.DISTANCE: "too far from backward",
    Rule.REDUCTION: "reduction op",
}


def evidence_of(region: LiveRegion, **config: Any) -> MinCutEvidence | None:
    return torch_min_cut_evidence(
        region.gm, num_fwd_outputs=region.num_fwd_outputs, static_indices=region.static_indices, **config
    )


def compare(region: LiveRegion, heuristic: Heuristic | None = None, **config: Any) -> Decision:
    """Assert that ours equals PyTorch's on one region; `config` are PyTorch's settings that match `heuristic`."""
    decision = decide(region.graph, heuristic or Heuristic(), cse=bool(config.get("cse", True)))
    evidence = evidence_of(region, **config)
    if evidence is None:
        assert decision.saved == ()
        return decision
    reduced = eliminate_dead(region.graph)[0]
    if config.get("cse", True):
        reduced = eliminate_common(reduced)[0]
    assert [node.name for node in reduced.nodes if node.kind is not NodeKind.OUTPUT] == list(evidence.nodes)
    compare_roles(reduced, evidence)
    aggressive = heuristic is not None and heuristic.aggressive
    if aggressive and decision.bans.keys() != evidence.bans.keys():
        # The departure: torch would draw random numbers a second time, mincut never does.
        extra = decision.bans.keys() - evidence.bans.keys()
        assert all(Tag.RANDOM in reduced[name].tags for name in extra)
        return decision
    assert decision.bans.keys() == evidence.bans.keys()
    assert {name: phrase(name, rule, evidence, aggressive) for name, rule in decision.bans.items()} == evidence.bans
    assert decision.weights == {name: weight for name, weight in evidence.weights.items() if math.isfinite(weight)}
    assert decision.cut_value == evidence.cut_value
    assert {name for name, _ in decision.saved} == evidence.saved - only_asserted(reduced)
    return decision


def compare_roles(graph: JointGraph, evidence: MinCutEvidence) -> None:
    roles = classify(graph)
    listed = list(zip(graph.nodes, range(len(graph.nodes) - 1), strict=False))
    for field in ("required_forward", "required_backward", "tangents_closure", "unclaimed"):
        flags = getattr(roles, field)
        assert {node.name for node, i in listed if flags[i]} == getattr(evidence, field), field
    assert {n.name: roles.forward_order[i] for n, i in listed if roles.forward_order[i] >= 0} == evidence.forward_order
    assert {node.name: roles.dist_from_backward[i] for node, i in listed} == evidence.dist_from_backward


def phrase(name: str, rule: str, evidence: MinCutEvidence, aggressive: bool) -> str:
    """PyTorch's words for our rule. It has none for two rules, but logs when it applies them; and unless it is to be
    aggressive it says of random and compute intensive ops only that they are not on its list."""
    if rule == Rule.FAR_APART:
        assert name in evidence.far_apart
        return "cannot recompute"
    if rule == Rule.LONG_CHAIN:
        assert name in evidence.long_chain
        return "cannot recompute"
    if not aggressive and rule in (Rule.RANDOM, Rule.COMPUTE_INTENSIVE):
        rule = Rule.ALLOWLIST
    return f"cannot recompute: {TORCH_PHRASES[Rule(rule)]}"


def only_asserted(graph: JointGraph) -> set[str]:
    """Symbolic values that only run-time checks read: torch drops them after its cut, mincut with it."""
    found: set[str] = set()
    for position, node in enumerate(graph.nodes):
        users = [graph.nodes[user].target for user in graph.users_of[position]]
        if users and all(target == "aten._assert_scalar.default" for target in users):
            found.add(node.name)
    return found
