"""Nodes that must not be recomputed, judged one by one (torch's `should_ban_recomputation`, 2.13).

Rules apply in torch's order and the first that fits is the one recorded. A ban is not allowed on a view (recomputing it
costs nothing), on a symbolic float, and where the user asks for recomputation.
"""

from __future__ import annotations

from aotcli.analysis.mincut_chains import ban_long_chains, ban_used_far_apart
from aotcli.analysis.mincut_problem import Problem, Rule
from aotcli.analysis.roles import FORWARD_INPUT_KINDS
from aotcli.ir.joint import NodeKind, Ref, Tag
from aotcli.ir.tensor import SymbolSpec

_FREE_COPIES = frozenset({"aten.lift_fresh_copy.default", "aten.lift_fresh.default"})

REDUCTION_FACTOR = 4
"""An op whose tensor inputs are more than this many times its output counts as a reduction."""

_UNREACHED = 1000
"""Distances from here on mean that the backward is not reached, whatever `max_distance` says."""

Bans = list[Rule | None]


def find_bans(problem: Problem) -> Bans:
    """The rule that bans each node from recomputation, or None, by position."""
    bans: Bans = [None] * len(problem.graph.nodes)
    allowed = _ban_allowed(problem)
    materialized = _materialized_in_backward(problem)
    for position in range(len(bans) - 1):
        rule = None
        if allowed[position] and not problem.roles.tangents_closure[position]:
            rule = _rule_for(problem, position, materialized[position])
        if rule is None and position in problem.mutated.banned and problem.applies(position, Rule.MUTATED):
            rule = Rule.MUTATED
        bans[position] = rule
    if not problem.heuristic.aggressive:
        ban_used_far_apart(problem, bans, allowed)
        ban_long_chains(problem, bans, allowed)
    return bans


def _ban_allowed(problem: Problem) -> list[bool]:
    recompute, view = problem.policies.must_recompute, problem.ops.view
    released, kept = problem.wished.released, problem.wished.kept
    return [
        not recompute[position]
        and position not in released
        and (position in kept or not view[position])
        and not (isinstance(node.value, SymbolSpec) and node.value.kind == "float")
        for position, node in enumerate(problem.graph.nodes)
    ]


def _rule_for(problem: Problem, position: int, materialized: bool) -> Rule | None:
    node = problem.graph.nodes[position]
    kind = node.kind
    if kind in FORWARD_INPUT_KINDS:
        rule = Rule.SEED if kind is NodeKind.SEED else Rule.PRIMAL
        return rule if problem.applies(position, rule) else None
    if kind is not NodeKind.OP or not problem.roles.required_forward[position]:
        return None
    if node.target == "operator.getitem":
        return None
    if problem.policies.must_save[position]:
        return Rule.MUST_SAVE
    if node.target in _FREE_COPIES:
        return None
    by_op = _rule_by_op(problem, position)
    if by_op is not None and problem.applies(position, by_op):
        return by_op
    if not problem.heuristic.aggressive and materialized and problem.applies(position, Rule.MATERIALIZED):
        return Rule.MATERIALIZED
    distance = problem.roles.dist_from_backward[position]
    if problem.heuristic.max_distance < distance < _UNREACHED and problem.applies(position, Rule.DISTANCE):
        return Rule.DISTANCE
    if _is_reduction(problem, position) and problem.applies(position, Rule.REDUCTION):
        return Rule.REDUCTION
    return None


def _rule_by_op(problem: Problem, position: int) -> Rule | None:
    """The rule for what the op is. Off the list of recomputable ops torch has one phrase, here random and compute
    intensive ops are told apart from the rest. In the aggressive mode torch redraws random numbers of ops outside its
    small random set; this never does, nor where a random op is listed by hand."""
    aggressive = problem.heuristic.aggressive
    tags = problem.graph.nodes[position].tags
    if not aggressive and problem.ops.recomputable[position] and Tag.RANDOM not in tags:
        return None
    if problem.ops.random[position]:
        return Rule.RANDOM
    if problem.ops.compute_intensive[position]:
        return Rule.COMPUTE_INTENSIVE
    if Tag.RANDOM in tags:
        return Rule.RANDOM
    if not aggressive:
        return Rule.ALLOWLIST
    return Rule.NON_BUILTIN if problem.heuristic.ban_non_builtin and Tag.NON_BUILTIN in tags else None


def _is_reduction(problem: Problem, position: int) -> bool:
    return problem.sizes[position] * REDUCTION_FACTOR < tensor_bytes_read(problem, position)


def tensor_bytes_read(problem: Problem, position: int) -> int:
    """Bytes that count as read by an op: arguments that are tensors themselves, each time they occur; no lists."""
    index, sizes = problem.graph.index, problem.sizes
    return sum(sizes[index[arg.name]] for arg in problem.graph.nodes[position].args if isinstance(arg, Ref))


def _materialized_in_backward(problem: Problem) -> list[bool]:
    """Whether a node's value, seen through views, is read outside the forward by an op that cannot fuse the read: then
    it exists in memory in the backward anyway, and recomputing it is never free."""
    users_of, forward, view = problem.graph.users_of, problem.roles.required_forward, problem.ops.view
    fusible = problem.fusion.fusible
    read = [False] * len(users_of)
    for position in range(len(users_of) - 1, -1, -1):
        for user in users_of[position]:
            if (view[user] and read[user]) or (not forward[user] and not fusible(position, user)):
                read[position] = True
                break
    return [each and not is_view for each, is_view in zip(read, view, strict=True)]
