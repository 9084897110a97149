"""The rule that decided over a value, with what the rule looked at: the min cut's problem, posed once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.explain_region import place_of
from aotcli.analysis.mincut_bans import REDUCTION_FACTOR, Bans, find_bans, tensor_bytes_read
from aotcli.analysis.mincut_chains import LONGEST_CHAIN, first_unfusible
from aotcli.analysis.mincut_problem import Heuristic, Problem, Rule, pose
from aotcli.analysis.mincut_reasons import decided_by, unfusible_reads
from aotcli.analysis.mincut_weights import MAX_EXPONENT, find_weights
from aotcli.analysis.wishes import NO_WISHES, Wishes
from aotcli.ir.explanation import Amount, Fact, Quantity, Weight
from aotcli.ir.joint import JointGraph, NodeKind


@dataclass(frozen=True)
class Evidence:
    """What the min cut had before it: the problem on the graph without duplicates, bans and weights by position; the
    options with which it was posed, to pose it once more."""

    problem: Problem
    bans: Bans
    weights: list[int | None]
    replaced: Mapping[str, str]
    cse: bool
    wishes: Wishes

    def position(self, name: str) -> int | None:
        """Where a node stands in the reduced graph; None for one that is dead."""
        while name in self.replaced:
            name = self.replaced[name]
        return self.problem.graph.index.get(name)


def evidence(graph: JointGraph, heuristic: Heuristic, *, cse: bool, wishes: Wishes = NO_WISHES) -> Evidence | None:
    """The evidence of a min cut with these options; None where the graph has no backward."""
    live, _ = eliminate_dead(graph)
    reduced, replaced = eliminate_common(live) if cse else (live, {})
    problem = pose(reduced, heuristic, (), wishes.renamed(replaced))
    if not any(problem.roles.required_backward):
        return None
    return Evidence(problem, find_bans(problem), find_weights(problem), replaced, cse, wishes)


def rule_facts(found: Evidence, name: str, maker: str) -> tuple[Fact, ...]:
    """What the rule that decided over a saved value looked at; `maker` made the memory that the value lies in. Empty
    for a value that no rule bans: there the weights decide."""
    position = found.position(name)
    decided = None if position is None else decided_by(found.problem, found.bans, position)
    if decided is None:
        return ()
    origin, rule = decided
    facts = _FACTS[rule](found.problem, origin) if rule in _FACTS else []
    if origin != found.position(maker):
        facts = [*facts, _fact(f"the rule holds for {_op(found.problem, origin)}, which it was taken from")]
    return tuple(facts)


def weight_of(found: Evidence, name: str) -> Weight | None:
    """What saving a value weighs in the cut."""
    position = found.position(name)
    if position is None:
        return None
    problem = found.problem
    node = problem.graph.nodes[position]
    distance = problem.roles.dist_from_backward[position]
    users = problem.graph.users_of[position]
    doubled = not node.is_placeholder and all(problem.fusion.fusible(position, user) for user in users)
    return Weight(
        weight=found.weights[position],
        nbytes=problem.sizes[position],
        distance=distance,
        exponent=max(min(distance, MAX_EXPONENT), 1),
        doubled=doubled,
        free=node.name in problem.graph.static_inputs,
    )


def _op(problem: Problem, position: int) -> str:
    """An op and its module, as text of a fact."""
    node = problem.graph.nodes[position]
    where = f" of {node.module}" if node.module else ""
    return _text(place_of(problem.graph, node).what + where)


def _text(text: str) -> str:
    """Words from elsewhere as part of a fact, whose braces mean amounts."""
    return text.replace("{", "{{").replace("}", "}}")


def _fact(text: str, *amounts: tuple[int, Quantity]) -> Fact:
    return Fact(text, tuple(Amount(*amount) for amount in amounts))


def _listed(problem: Problem, position: int, listed: str) -> list[Fact]:
    node = problem.graph.nodes[position]
    text = f"{_text(node.packet)} {listed}"
    return [_fact(f"{text}; running it costs {{}}", (node.flops, Quantity.FLOPS)) if node.flops else _fact(text)]


def _compute_intensive(problem: Problem, position: int) -> list[Fact]:
    return _listed(problem, position, "is on the list of compute-intensive ops")


def _allowlist(problem: Problem, position: int) -> list[Fact]:
    return _listed(problem, position, "is not among the ops that may be recomputed")


def _random(problem: Problem, position: int) -> list[Fact]:
    return _listed(problem, position, "draws random numbers, and would draw others")


def _non_builtin(problem: Problem, position: int) -> list[Fact]:
    return _listed(problem, position, "comes from outside torch")


def _materialized(problem: Problem, position: int) -> list[Fact]:
    reads = unfusible_reads(problem, position)
    if not reads:
        return []
    read, reader = reads[0]
    if problem.graph.nodes[reader].kind is NodeKind.OUTPUT:
        return [_fact("the step returns it, so it exists in memory anyway")]
    through = "" if read == position else f" as {_text(problem.graph.nodes[read].name)}"
    more = f", nor can {len(reads) - 1} more" if len(reads) > 1 else ""
    return [_fact(f"the backward's {_op(problem, reader)} reads it{through} and cannot fuse with what makes it{more}")]


def _distance(problem: Problem, position: int) -> list[Fact]:
    distance, limit = problem.roles.dist_from_backward[position], problem.heuristic.max_distance
    text = "its distance from the backward is {} ops, and the limit {}"
    return [_fact(text, (distance, Quantity.COUNT), (limit, Quantity.COUNT))]


def _reduction(problem: Problem, position: int) -> list[Fact]:
    read, made = tensor_bytes_read(problem, position), problem.sizes[position]
    text = "its op reads {} and makes {}: less than one byte of " + str(REDUCTION_FACTOR)
    return [_fact(text, (read, Quantity.BYTES), (made, Quantity.BYTES))]


def _must_save(problem: Problem, position: int) -> list[Fact]:
    return [_fact(f"{_text(problem.policies.cause.get(position, 'a checkpoint policy'))} asks for it")]


def _mutated(problem: Problem, position: int) -> list[Fact]:
    name = problem.mutated.source[position]
    return [_fact(f"it reads {_text(problem.graph[name].origin or name)}, which the step changes in place afterwards")]


def _far_apart(problem: Problem, position: int) -> list[Fact]:
    """The value that is read both before something unfusible and, here, after it."""
    order, broken_at = problem.roles.forward_order, first_unfusible(problem)
    for used in problem.graph.inputs_of[position]:
        users = [user for user in problem.graph.users_of[used] if order[user] >= 0]
        if len(users) < 2 or not problem.fusion.fusible(used, position):
            continue
        first = min(broken_at[user] for user in users)
        if order[position] > first:
            near = _op(problem, min(users, key=order.__getitem__))
            between = _op(problem, order.index(first))
            name = _text(problem.graph.nodes[used].name)
            return [_fact(f"{name} is read by {near}, and here again after {between}, which no kernel spans")]
    return []


def _long_chain(_problem: Problem, _position: int) -> list[Fact]:
    text = "the chain of fusible ops that leads here is one op wide and more than {} long"
    return [_fact(text, (LONGEST_CHAIN, Quantity.COUNT))]


_FACTS: Mapping[Rule, Callable[[Problem, int], list[Fact]]] = {
    Rule.COMPUTE_INTENSIVE: _compute_intensive,
    Rule.ALLOWLIST: _allowlist,
    Rule.RANDOM: _random,
    Rule.NON_BUILTIN: _non_builtin,
    Rule.MATERIALIZED: _materialized,
    Rule.DISTANCE: _distance,
    Rule.REDUCTION: _reduction,
    Rule.MUST_SAVE: _must_save,
    Rule.MUTATED: _mutated,
    Rule.FAR_APART: _far_apart,
    Rule.LONG_CHAIN: _long_chain,
}
