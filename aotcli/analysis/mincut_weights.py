"""What saving each value costs, in the heuristic's units (torch's `get_node_weight`, 2.13).

A tensor weighs its bytes (numel x itemsize) times 1.1 to the power of its distance from the backward, at least 1 and at
most 100, cut to an integer; twice that if every reader fuses with it, because then it need not exist in memory at all.
Parameters and buffers are free: they live across steps. A symbolic int or bool weighs 1, a symbolic float 4 (torch
means never to save it, but its check comes first and this is what it does), an opaque object 0. Tuples, and mutated
inputs, cannot be saved.
"""

from __future__ import annotations

from aotcli.analysis.mincut_problem import Problem, Rule
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec

MAX_EXPONENT = 100
_FACTORS = [1.1**exponent for exponent in range(MAX_EXPONENT + 1)]
_FLOAT_WEIGHT = 4


def find_weights(problem: Problem) -> list[int | None]:
    """Weight of each node by position; None for one that cannot be saved."""
    graph, distance = problem.graph, problem.roles.dist_from_backward
    free = frozenset(graph.static_inputs)
    users_of, fusible = graph.users_of, problem.fusion.fusible
    weights: list[int | None] = []
    for position, node in enumerate(graph.nodes):
        value = node.value
        weight: int | None = None
        if isinstance(value, TensorSpec):
            if node.name in free:
                weight = 0
            else:
                exponent = max(min(distance[position], MAX_EXPONENT), 1)
                weight = int(problem.sizes[position] * _FACTORS[exponent])
                if not node.is_placeholder:
                    for user in users_of[position]:
                        if not fusible(position, user):
                            break
                    else:
                        weight *= 2
        elif isinstance(value, SymbolSpec):
            weight = _FLOAT_WEIGHT if value.kind == "float" else 1
        elif isinstance(value, OpaqueSpec) and value.kind != "graph":
            weight = 0
        weights.append(weight)
    for position in problem.mutated.unsaveable:
        if problem.applies(position, Rule.MUTATED):
            weights[position] = None
    for position in problem.wished.unsaveable:
        weights[position] = None
    for position, rule in problem.ignored:
        if rule in (Rule.CUT, Rule.NEEDED):
            weights[position] = None
    return weights
