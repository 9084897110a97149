"""Says why no plan exists: which node can be neither saved nor recomputed, and whose annotations ask for it."""

from __future__ import annotations

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut_bans import Bans, find_bans
from aotcli.analysis.mincut_problem import Heuristic, Problem, Rule, pose
from aotcli.analysis.mincut_weights import find_weights
from aotcli.errors import PlanImpossibleError
from aotcli.ir.joint import JointGraph, Node
from aotcli.ir.tensor import OpaqueSpec, TensorSpec


def annotation_conflict(graph: JointGraph) -> PlanImpossibleError | None:
    """The error for checkpoint annotations of `graph` that no plan can keep; None where there are none such."""
    if all(node.checkpoint is None for node in graph.nodes):
        return None
    problem = pose(eliminate_common(eliminate_dead(graph)[0])[0], Heuristic())
    bans, weights = find_bans(problem), find_weights(problem)
    return impossible(problem, bans, weights) if infinite_paths(problem, bans, weights) else None


def impossible(problem: Problem, bans: Bans, weights: list[int | None]) -> PlanImpossibleError:
    """The error for a problem that has an infinite path from source to sink; names every node on a shortest one."""
    path = infinite_paths(problem, bans, weights)[0]
    lines = [_cannot_recompute(problem, bans, path[0])]
    lines += [_cannot_save(problem, v) for v in path[:-1]]
    last = path[-1]
    if problem.policies.must_recompute[last] or problem.roles.tangents_closure[last]:
        lines.append(_must_compute(problem, last))
    else:
        lines += [_cannot_save(problem, last), f"{problem.graph.nodes[last].name} is returned by the backward"]
    named = _annotations(problem, path)
    return PlanImpossibleError(
        f"the backward needs {_place(problem.graph.nodes[path[0]])}, which can be neither saved nor recomputed",
        why="; ".join(lines),
        fix=f"change one of these: {'; '.join(named)}"
        if named
        else "run again with --strategy save-all, and report the model",
    )


def _annotations(problem: Problem, path: list[int]) -> list[str]:
    """What users ask for of the nodes on a path: wishes, and checkpoint policies."""
    wished = problem.wished
    rules = [rule for v in path for rule in (wished.kept.get(v), wished.unsaveable.get(v)) if rule is not None]
    nodes = [problem.graph.nodes[v] for v in path if v not in wished.kept and v not in wished.unsaveable]
    tags = [f"{node.checkpoint} on {_place(node)}" for node in nodes if node.checkpoint is not None]
    return list(dict.fromkeys([*map(str, rules), *tags]))


def infinite_paths(problem: Problem, bans: Bans, weights: list[int | None]) -> list[list[int]]:
    """Positions from a node that cannot be recomputed to one that the backward must compute or return, each read by the
    next and none but the last possible to save. A shortest path for each such end; the shortest of all first."""
    closure, recompute = problem.roles.tangents_closure, problem.policies.must_recompute
    came_from: dict[int, int] = {v: v for v, rule in enumerate(bans) if rule is not None}
    queue = list(came_from)
    paths: list[list[int]] = []
    for v in queue:
        fixed = closure[v] or recompute[v]
        if fixed or (weights[v] is None and problem.roles.required_backward[v]):
            paths.append(_path_to(v, came_from))
            continue
        for user in problem.graph.users_of[v] if weights[v] is None else ():
            if user not in came_from:
                came_from[user] = v
                queue.append(user)
    return paths


def _path_to(end: int, came_from: dict[int, int]) -> list[int]:
    path = [end]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    return path[::-1]


def _place(node: Node) -> str:
    where = f" at {node.source}" if node.source else ""
    return f"{node.name} ({node.target}{where})"


def _cannot_recompute(problem: Problem, bans: Bans, position: int) -> str:
    node, rule = problem.graph.nodes[position], bans[position]
    texts = {
        Rule.MUST_SAVE: f"must be saved ({problem.policies.cause.get(position, '')}), so it may not be recomputed",
        Rule.MUTATED: f"reads {problem.mutated.source.get(position)}, which the step changes: it may not be recomputed",
        Rule.PRIMAL: "is an input of the step",
        Rule.SEED: "is a random seed",
    }
    if position in problem.wished.refused:
        return f"{node.name} may not run again ({problem.wished.refused[position]})"
    return f"{node.name} " + texts.get(rule or Rule.CUT, f"may not be recomputed ({rule})")


def _cannot_save(problem: Problem, position: int) -> str:
    node = problem.graph.nodes[position]
    if position in problem.mutated.unsaveable:
        return f"{node.name} cannot be saved (the step changes {problem.mutated.source[position]} in place)"
    if position in problem.wished.unsaveable:
        return f"{node.name} may not be saved: {problem.wished.unsaveable[position]}"
    if isinstance(node.value, tuple):
        return f"{node.name} cannot be saved (it is a tuple)"
    if isinstance(node.value, (TensorSpec, OpaqueSpec)):
        return f"{node.name} was excluded from saving"
    return f"{node.name} cannot be saved (it is no tensor)"


def _must_compute(problem: Problem, position: int) -> str:
    node = problem.graph.nodes[position]
    if problem.policies.must_recompute[position]:
        return f"{node.name} must be recomputed (checkpoint policy {node.checkpoint})"
    return f"{node.name} is computed in the backward from it"
