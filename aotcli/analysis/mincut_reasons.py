"""Why each value of the cut is saved, in the words of a report.

The rule is the ban that keeps the value from being recomputed, or `cut` where it might be, and saving it costs least.
A view, or a part of a tuple, is saved for the reason that holds for what it was taken from.
"""

from __future__ import annotations

from aotcli.analysis.mincut_bans import Bans
from aotcli.analysis.mincut_problem import Problem, Rule, taken_from
from aotcli.ir.joint import Node, NodeKind, Ref, Tag
from aotcli.ir.partition import Reason
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec

_FAMILIES = {
    "matmul": "mm addmm bmm baddbmm addbmm mv dot linear _scaled_mm _int_mm _grouped_mm _scaled_grouped_mm",
    "convolution": "convolution convolution_backward cudnn_convolution _convolution mkldnn_convolution",
}
_FAMILY_OF = {op: family for family, ops in _FAMILIES.items() for op in ops.split()}

_FIXED_TEXTS = {
    Rule.SEED: "random seed",
    Rule.DISTANCE: "far from backward",
    Rule.REDUCTION: "reduction",
    Rule.FAR_APART: "used far apart",
    Rule.LONG_CHAIN: "long fusible chain",
}


def saved_reason(problem: Problem, bans: Bans, position: int) -> Reason:
    """The reason for which the cut holds the value at `position`."""
    decided = decided_by(problem, bans, position)
    if decided is None:
        return _choice(problem, position, problem.graph.nodes[position])
    origin, rule = decided
    source = problem.graph.nodes[origin]
    if origin != position and source.is_placeholder:
        return Reason(Rule.CUT.value, f"view of {_input_word(source)}")
    return _ban_reason(problem, origin, rule)


def decided_by(problem: Problem, bans: Bans, position: int) -> tuple[int, Rule] | None:
    """The node whose ban keeps the value at `position` from being recomputed (itself, or what it was taken from), and
    the ban; None where there is none and the weights decide."""
    origin: int | None = position
    while origin is not None:
        rule = bans[origin]
        if rule is not None:
            return origin, rule
        origin = taken_from(problem.graph, problem.ops, origin)
    return None


def _choice(problem: Problem, position: int, node: Node) -> Reason:
    if problem.roles.required_backward[position]:
        return Reason(Rule.NEEDED.value, "returned by backward")
    if isinstance(node.value, SymbolSpec):
        return Reason(Rule.CUT.value, "symbolic size")
    return Reason(Rule.CUT.value, "cut: min bytes")


def _ban_reason(problem: Problem, position: int, rule: Rule) -> Reason:
    node = problem.graph.nodes[position]
    if isinstance(node.value, SymbolSpec):
        text = "symbolic size"
    elif rule is Rule.PRIMAL:
        text = "backward state" if isinstance(node.value, OpaqueSpec) else _input_word(node)
    elif rule is Rule.MUST_SAVE:
        text = problem.policies.cause.get(position, "checkpoint policy")
    elif rule is Rule.MUTATED:
        text = f"reads {problem.mutated.source[position]}, changed in place"
    elif rule is Rule.MATERIALIZED:
        text = _reader(problem, position)
    elif rule in (Rule.ALLOWLIST, Rule.RANDOM, Rule.COMPUTE_INTENSIVE, Rule.NON_BUILTIN):
        return _op_reason(problem, position, rule)
    else:
        text = _FIXED_TEXTS[rule]
    return Reason(rule.value, text)


def _input_word(node: Node) -> str:
    return {NodeKind.PARAM: "parameter", NodeKind.BUFFER: "buffer"}.get(node.kind, "input")


def _op_reason(problem: Problem, position: int, rule: Rule) -> Reason:
    """An op that is not on the list of recomputable ops is often not there for a reason that can be named."""
    node = problem.graph.nodes[position]
    family = _family(node)
    if family is not None:
        return Reason(rule.value, family)
    unnamed = {Rule.RANDOM: "random", Rule.ALLOWLIST: "not recomputable", Rule.NON_BUILTIN: "custom op"}
    return Reason(rule.value, unnamed.get(rule, _short(node)))


def _family(node: Node) -> str | None:
    if "attention" in node.target:
        return "attention"
    return _FAMILY_OF.get(_short(node))


def _short(node: Node) -> str:
    return node.packet.rpartition(".")[2]


def _reader(problem: Problem, position: int) -> str:
    """The costliest kind of op outside the forward that reads the value, through views, and cannot fuse the read."""
    found = [_describe_reader(problem, value, user) for value, user in unfusible_reads(problem, position)]
    return min(found, key=lambda each: each[0])[1] if found else "read by backward"


def unfusible_reads(problem: Problem, position: int) -> list[tuple[int, int]]:
    """Reads of the value, or of a view of it, by ops outside the forward that cannot fuse them: (what is read, reader),
    the reader that says most first."""
    found: list[tuple[int, int]] = []
    pending, seen = [position], {position}
    for v in pending:
        for user in problem.graph.users_of[v]:
            if not problem.roles.required_forward[user] and not problem.fusion.fusible(v, user):
                found.append((v, user))
            is_view = problem.ops.view[user] or Tag.VIEW_SCHEMA in problem.graph.nodes[user].tags
            if is_view and user not in seen:
                seen.add(user)
                pending.append(user)
    return sorted(found, key=lambda each: _describe_reader(problem, *each)[0])


def _describe_reader(problem: Problem, value: int, user: int) -> tuple[int, str]:
    """(rank, phrase): matmul and its like first, then other ops, then outputs, then views, whose readers say more."""
    node = problem.graph.nodes[user]
    if node.kind is NodeKind.OUTPUT:
        returned = Ref(problem.graph.nodes[value].name) in problem.graph.forward_outputs
        return (3, "forward output") if returned else (2, "is a gradient")
    family = _family(node)
    rank = 0 if family is not None else 4 if Tag.VIEW_SCHEMA in node.tags else 1
    return rank, f"feeds bwd {family or _short(node)}"
