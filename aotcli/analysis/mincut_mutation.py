"""Reads of inputs that the step changes in place (the one place where `mincut` departs from PyTorch 2.13).

A value that is recomputed in the backward reads its inputs again. If one of them is a buffer or input that the forward
has changed since, the gradient is silently wrong: `y = (x * w) * (buf * 2); buf.mul_(0.5)` under torch's min cut saves
`buf`, recomputes `buf * 2` after the change, and halves the gradient. So the first op that is no view after such a read
is never recomputed, and the mutated input, or a view of it, is not saved, unless the backward itself reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.roles import Roles
from aotcli.ir.joint import JointGraph, Node, Tag
from aotcli.ir.tensor import TensorSpec


@dataclass(frozen=True, slots=True)
class MutatedReads:
    """Positions: `banned` ops read a mutated input, `unsaveable` are mutated inputs and views of them. `source` names
    the mutated input behind each."""

    banned: frozenset[int]
    unsaveable: frozenset[int]
    source: dict[int, str]


def mutated_reads(graph: JointGraph, roles: Roles) -> MutatedReads:
    source = {graph.index[name]: name for name in graph.mutated if name in graph.index}
    if not source:
        return MutatedReads(frozenset(), frozenset(), {})
    aliases = set(source)
    banned: set[int] = set()
    for position, node in enumerate(graph.nodes):
        if position in aliases or roles.tangents_closure[position] or not graph.inputs_of[position]:
            continue
        read = [each for each in graph.inputs_of[position] if each in aliases]
        if not read or position == len(graph.nodes) - 1:
            continue
        source[position] = source[read[0]]
        if _is_alias(node, graph.nodes[graph.index[source[position]]]):
            aliases.add(position)
        else:
            banned.add(position)
    return MutatedReads(frozenset(banned), frozenset(aliases - _read_by_backward(graph, roles, aliases)), source)


def _is_alias(node: Node, mutated: Node) -> bool:
    if Tag.VIEW in node.tags or Tag.VIEW_SCHEMA in node.tags or node.target == "operator.getitem":
        return True
    one, other = node.value, mutated.value
    return isinstance(one, TensorSpec) and isinstance(other, TensorSpec) and 0 <= one.storage == other.storage


def _read_by_backward(graph: JointGraph, roles: Roles, aliases: set[int]) -> set[int]:
    """Aliases that the backward proper reads or returns, and what they are views of."""
    found: set[int] = set()
    for position in sorted(aliases, reverse=True):
        users = graph.users_of[position]
        direct = roles.required_backward[position] or any(roles.tangents_closure[user] for user in users)
        if direct or any(user in found for user in users):
            found.add(position)
    return found
