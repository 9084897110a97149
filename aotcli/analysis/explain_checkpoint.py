"""Rules as selective activation checkpointing: which modules to checkpoint, and the policy of each op in them.

torch.utils.checkpoint tags ops as they run: a policy function sees the op, and by counting which call of it this is. So
the modules in which the rules' values are made are checkpointed, the outermost of them where they nest, and within
each an op has a policy as a whole, or call by call where its calls differ. Everything else is PREFER_SAVE, which leaves
the decision to the partitioner. What cannot be said so is listed:

* values that no module of the model makes: those of a loss outside of it, or of a function;
* results of one op of which some are to be saved and others not: a tag is the whole op's;
* at level inductor, ops that may be pieces of another op, which checkpointing sees whole;
* ops in modules that the model checkpoints already, and ops of higher order.

Whether the tags lead to the plan of the rules is then tried, on the record, with the rules of PyTorch's partitioner: a
tag MUST_RECOMPUTE forces an op into the backward, and what one checkpointed module hands to the next is saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotcli.analysis.explain_region import place_of
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.patterns import GETITEM
from aotcli.analysis.roles import classify
from aotcli.analysis.wishes import NO_WISHES, Made, Wishes, made_values, match_rules
from aotcli.errors import InputError, PlanImpossibleError
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.policy import Action, PolicyRule

_LOSS = "(loss)"
_DETACH = "aten.detach.default"  # checkpointing leaves it to itself
_TAGS = {Action.SAVE: "MUST_SAVE", Action.RECOMPUTE: "MUST_RECOMPUTE"}


@dataclass(frozen=True, slots=True)
class OpPolicy:
    """The policy of an op (with overload) in a checkpointed module: `every` call's, or that of single calls, counted
    from 0 in the order in which the module makes them."""

    op: str
    every: Action | None = None
    calls: tuple[tuple[int, Action], ...] = ()


Table = tuple[OpPolicy, ...]
"""The policies of one module's ops."""


@dataclass(frozen=True, slots=True)
class CheckpointedModules:
    """Modules (paths, "" for the model itself) that are checkpointed with one policy."""

    paths: tuple[str, ...]
    ops: Table


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """`rules` as checkpoints. `limits` are what cannot be said, `differences` what would be saved otherwise than under
    the rules although all of it was said; both are sentences."""

    rules: tuple[PolicyRule, ...]
    modules: tuple[CheckpointedModules, ...]
    limits: tuple[str, ...]
    differences: tuple[str, ...]


def as_checkpoint(
    graphs: Sequence[JointGraph], rules: Sequence[PolicyRule], heuristic: Heuristic, *, cse: bool
) -> CheckpointPolicy:
    """`rules` as selective checkpoints of the modules of a step.

    Raises InputError where nothing of them can be said so.
    """
    tables: dict[str, Table] = {}
    limits: dict[str, None] = {}
    differences: dict[str, None] = {}
    for graph in graphs:
        said = _say(graph, rules, heuristic, cse=cse)
        limits.update(dict.fromkeys(said.limits))
        differences.update(dict.fromkeys(said.differences))
        for root, table in said.tables.items():
            if tables.setdefault(root, table) != table:
                limits[f"{root or 'the model'} runs in several regions, whose calls cannot be told apart"] = None
    if not tables:
        raise InputError(
            "none of these rules can be written as selective checkpointing",
            why="; ".join(limits) or "they match nothing that the forward makes",
            fix="--write-policy FILE.toml, for --strategy policy"
            + (", or trace with --level aten" if any(graph.level == "inductor" for graph in graphs) else ""),
        )
    alike: dict[Table, list[str]] = {}
    for root, table in tables.items():
        alike.setdefault(table, []).append(root)
    modules = tuple(CheckpointedModules(tuple(paths), table) for table, paths in alike.items())
    return CheckpointPolicy(tuple(rules), modules, tuple(limits), tuple(differences))


@dataclass(frozen=True, slots=True)
class _Said:
    """Checkpoints of one graph, by module; what they leave out, and what they lead to otherwise."""

    tables: Mapping[str, Table]
    limits: list[str]
    differences: list[str]


def _say(graph: JointGraph, rules: Sequence[PolicyRule], heuristic: Heuristic, *, cse: bool) -> _Said:
    """Rules as checkpoints of one graph: tags on ops alone where that is enough, on views of their results, too, where
    the partitioner would save those instead."""
    tries: list[_Said] = []
    for views in (False, True):
        wanted = _Wanted(graph, rules, views=views)
        tables = {root: _table(graph, wanted.actions, inside) for root, inside in wanted.inside.items()}
        differences = _differences(graph, wanted, tables, heuristic, cse=cse) if tables else []
        tries.append(_Said(tables, wanted.limits, differences))
        if not differences:
            return tries[-1]
    return min(tries, key=lambda said: len(said.differences))


class _Wanted:
    """What rules ask of the ops of one graph, as far as checkpointing can say it. With `views`, what is not to be saved
    is asked of views, too.

    `actions` are those of ops, by position; `inside` holds for each module to be checkpointed the positions of the ops
    that run in it, in order; `limits` say what is left out; `wishes` are all that the rules ask for.
    """

    def __init__(self, graph: JointGraph, rules: Sequence[PolicyRule], *, views: bool) -> None:
        self.graph = graph
        self.made = made_values(graph)
        self.wishes = match_rules(graph, rules, self.made).wishes
        self.limits: list[str] = []
        self.actions = self._actions()
        if views:
            self.actions.update(self._views())
        self.inside = self._inside()

    def _actions(self) -> dict[int, Action]:
        by_op: dict[int, dict[int, Action | None]] = {}
        for made in self.made:
            by_op.setdefault(made.op, {})[made.maker] = _action(self.graph, made, self.wishes)
        actions: dict[int, Action] = {}
        for op, parts in by_op.items():
            asked = {action for action in parts.values() if action is not None}
            limit = self._limit(op, contradictory=len(asked) > 1) if asked else None
            if limit is not None:
                self.limits.append(limit)
            elif asked:
                actions[op] = asked.pop()
        return actions

    def _views(self) -> dict[int, Action]:
        """Views of what is not to be saved, as far as the forward makes them in a module of the model."""
        nodes = self.graph.nodes
        found: dict[int, Action] = {}
        for made in self.made:
            if self.actions.get(made.op) is not Action.RECOMPUTE:
                continue
            for member in made.members[1:]:
                op = self.graph.inputs_of[member][0] if nodes[member].target == GETITEM else member
                node = nodes[op]
                if node.kind is NodeKind.OP and node.module not in (None, _LOSS) and op not in self.actions:
                    found[op] = Action.RECOMPUTE
        return found

    def _limit(self, op: int, *, contradictory: bool) -> str | None:
        """Why checkpointing cannot say what is asked of an op; None where it can."""
        node = self.graph.nodes[op]
        what = _described(self.graph, node)
        if node.module is None or node.module == _LOSS:
            return f"{what} is made outside the modules of the model"
        if node.ac_graph_id is not None:
            return f"{what} lies in a module that the model checkpoints itself"
        if node.target.count(".") != 2 or node.target.startswith("higher_order."):
            return f"{what} is no op of torch.ops"
        if self.graph.level == "inductor" and Tag.COMPUTE_INTENSIVE not in node.tags and "attention" not in node.target:
            return f"{what} may be a piece of another op, which checkpointing sees whole (--level aten shows it)"
        return (
            f"one result of {what} is to be saved and another not, and a tag is the whole op's"
            if contradictory
            else None
        )

    def _inside(self) -> dict[str, list[int]]:
        """The outermost modules that make what is asked for, with the ops that run in them."""
        closure = classify(self.graph).tangents_closure
        owners = dict.fromkeys(module for op in self.actions if (module := self.graph.nodes[op].module) is not None)
        roots = [path for path in owners if not any(_within(path, other) and path != other for other in owners)]
        inside: dict[str, list[int]] = {root: [] for root in roots}
        for position, node in enumerate(self.graph.nodes):
            if node.kind is NodeKind.OP and not closure[position] and node.module is not None and node.module != _LOSS:
                for root in roots:
                    if _within(node.module, root) and node.partitioner_tag != "is_backward":
                        inside[root].append(position)
        for root in [root for root, ops in inside.items() if any(self.graph.nodes[op].ac_graph_id for op in ops)]:
            self.limits.append(f"{root or 'the model'} holds modules that the model checkpoints itself")
            del inside[root]
        return inside


def _action(graph: JointGraph, made: Made, wishes: Wishes) -> Action | None:
    name = graph.nodes[made.maker].name
    if name in wishes.save:
        return Action.SAVE
    return Action.RECOMPUTE if name in wishes.recompute else None


def _within(path: str, root: str) -> bool:
    return root == "" or path == root or path.startswith(f"{root}.")


def _described(graph: JointGraph, node: Node) -> str:
    """An op and its module, layers folded: what holds for twelve of them is said once."""
    what = place_of(graph, node).what
    return f"{what} of {layer_pattern(node.module)}" if node.module else f"{what} ({node.name})"


def _table(graph: JointGraph, actions: Mapping[int, Action], inside: Sequence[int]) -> Table:
    """The policy of each op that has one, in the order of their first calls."""
    calls: dict[str, list[Action | None]] = {}
    for position in inside:
        node = graph.nodes[position]
        if node.target not in (GETITEM, _DETACH):
            calls.setdefault(node.target, []).append(actions.get(position))
    table: list[OpPolicy] = []
    for op, asked in calls.items():
        given = [(number, action) for number, action in enumerate(asked) if action is not None]
        if not given:
            continue
        same = len(given) == len(asked) and len({action for _, action in given}) == 1
        table.append(OpPolicy(op, every=given[0][1]) if same else OpPolicy(op, calls=tuple(given)))
    return tuple(table)


def _differences(
    graph: JointGraph,
    wanted: _Wanted,
    tables: Mapping[str, Table],
    heuristic: Heuristic,
    *,
    cse: bool,
) -> list[str]:
    """What the tags save otherwise than the rules, on the record."""
    try:
        by_tags = _saved_makers(_tagged(graph, wanted, tables), wanted.made, heuristic, NO_WISHES, cse=cse)
        by_rules = _saved_makers(graph, wanted.made, heuristic, wanted.wishes, cse=cse)
    except PlanImpossibleError as error:
        return [f"the partitioner cannot meet these tags: {error.why}"]
    more = [f"{_described(graph, graph.nodes[maker])} is saved, too" for maker in sorted(by_tags - by_rules)]
    less = [f"{_described(graph, graph.nodes[maker])} is not saved" for maker in sorted(by_rules - by_tags)]
    return list(dict.fromkeys(more + less))


def _tagged(graph: JointGraph, wanted: _Wanted, tables: Mapping[str, Table]) -> JointGraph:
    """The graph as tracing the checkpointed modules would tag it."""
    tags: dict[int, tuple[str | None, int]] = {}
    for number, (root, table) in enumerate(tables.items()):
        ops = {each.op: each for each in table}
        seen: dict[str, int] = {}
        for position in wanted.inside[root]:
            node = graph.nodes[position]
            if node.target == GETITEM:
                tags[position] = tags.get(graph.inputs_of[position][0], (None, number))
                continue
            if node.target == _DETACH:
                tags[position] = "PREFER_RECOMPUTE", number
                continue
            call = seen.get(node.target, 0)
            seen[node.target] = call + 1
            policy = ops.get(node.target)
            action = None if policy is None else policy.every or dict(policy.calls).get(call)
            tags[position] = (None if action is None else _TAGS[action], number)
    nodes = tuple(
        dataclasses.replace(node, checkpoint=tags[position][0], ac_graph_id=tags[position][1])
        if position in tags
        else node
        for position, node in enumerate(graph.nodes)
    )
    return dataclasses.replace(graph, nodes=nodes)


def _saved_makers(
    graph: JointGraph, made: Sequence[Made], heuristic: Heuristic, wishes: Wishes, *, cse: bool
) -> set[int]:
    decision = decide(graph, heuristic, cse=cse, wishes=wishes)
    saved = {name for name, _ in decision.saved}
    return {each.maker for each in made if any(graph.nodes[position].name in saved for position in each.members)}
