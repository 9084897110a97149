"""What a user wants saved or recomputed, brought down to the memory that a graph's forward makes.

Saving keeps memory, so a wish is about an allocation: the value that made it and all views of it. A rule matches an
allocation by what made it, or, where it names an op or a node, by one of its views too; it then stands for the base. An
op that returns several tensors makes several allocations. The first rule that matches an allocation has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from aotcli.analysis.patterns import GETITEM, matches_line, matches_module, matches_op
from aotcli.analysis.roles import classify
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.policy import Action, PolicyRule
from aotcli.ir.tensor import TensorSpec


@dataclass(frozen=True, slots=True)
class Made:
    """Memory that the forward makes, by positions: `maker` is the first value on it, `op` what runs to make it (for a
    part of a tuple, the op that returns the tuple), `members` are the maker and the views of it in graph order."""

    maker: int
    op: int
    nbytes: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wishes:
    """Names of makers (see `Made`) with the rule that asks. `save`: never run again in the backward. `recompute`: not
    saved, and run again only if the backward needs it."""

    save: Mapping[str, PolicyRule] = field(default_factory=dict[str, PolicyRule])
    recompute: Mapping[str, PolicyRule] = field(default_factory=dict[str, PolicyRule])

    def __bool__(self) -> bool:
        return bool(self.save or self.recompute)

    def renamed(self, replaced: Mapping[str, str]) -> Wishes:
        """The wishes after common subexpressions were merged; what was asked of the one that stands comes first."""
        own = self.save.keys() | self.recompute.keys()
        return Wishes(_renamed(self.save, replaced, own), _renamed(self.recompute, replaced, own))


NO_WISHES = Wishes()


@dataclass(frozen=True, slots=True)
class Matched:
    """The wishes of some rules for one graph. `makers` are the positions that each rule has, by rule; `notes` say which
    rules have nothing, and why."""

    wishes: Wishes
    makers: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def made_values(graph: JointGraph) -> tuple[Made, ...]:
    """All memory that the forward makes, in graph order; that of placeholders, which is there anyway, is left out."""
    closure = classify(graph).tangents_closure
    groups: dict[int, list[int]] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.value, TensorSpec) and not closure[position]:
            storage = node.value.storage
            groups.setdefault(storage if storage >= 0 else -2 - position, []).append(position)
    found: list[Made] = []
    for members in groups.values():
        maker = graph.nodes[members[0]]
        if maker.kind is not NodeKind.OP or _is_view_of_placeholder(graph, members[0]):
            continue
        assert isinstance(maker.value, TensorSpec)
        op = graph.inputs_of[members[0]][0] if maker.target == GETITEM else members[0]
        found.append(Made(members[0], op, maker.value.storage_nbytes, tuple(members)))
    return tuple(found)


def _is_view_of_placeholder(graph: JointGraph, position: int) -> bool:
    """Whether a tuple of views was made of a placeholder, whose own value has no storage number to tell it by."""
    node = graph.nodes[position]
    return node.target == GETITEM and graph.nodes[graph.inputs_of[position][0]].is_placeholder


def match_rules(graph: JointGraph, rules: Sequence[PolicyRule], made: Sequence[Made] | None = None) -> Matched:
    """Which rule has which memory of `graph`; modules are matched as the graph gives them (see owners.py)."""
    makers: list[list[int]] = [[] for _ in rules]
    seen = [0] * len(rules)
    wishes = {Action.SAVE: dict[str, PolicyRule](), Action.RECOMPUTE: dict[str, PolicyRule]()}
    for each in made_values(graph) if made is None else made:
        matching = [number for number, rule in enumerate(rules) if matches_rule(graph, rule, each)]
        for number in matching:
            seen[number] += 1
        if matching:
            rule = rules[matching[0]]
            makers[matching[0]].append(each.maker)
            wishes[rule.action][graph.nodes[each.maker].name] = rule
    notes = [
        f"{rule} matches {'nothing' if not count else 'only what earlier rules have'} in {graph.name}"
        for rule, count, own in zip(rules, seen, makers, strict=True)
        if not own
    ]
    found = Wishes(wishes[Action.SAVE], wishes[Action.RECOMPUTE])
    return Matched(found, tuple(tuple(each) for each in makers), tuple(notes))


def match_wrapped(graph: JointGraph, rules: Sequence[PolicyRule]) -> Matched:
    """The same for a graph whose modules may all lie in one that wraps the model that the rules were written for."""
    made = made_values(graph)
    matched = match_rules(graph, rules, made)
    about_modules = [number for number, rule in enumerate(rules) if rule.module is not None]
    inner = graph
    while about_modules and not any(matched.makers[number] for number in about_modules):
        inner = _unwrapped(inner)
        if inner is None:
            break
        tried = match_rules(inner, rules, made)
        if any(tried.makers[number] for number in about_modules):
            return tried
    return matched


def _unwrapped(graph: JointGraph) -> JointGraph | None:
    """The graph with module paths without their first part, where all have the same one; else None."""
    paths = {node.module for node in graph.nodes if node.module and not node.module.startswith("(")}
    first = {path.partition(".")[0] for path in paths}
    if len(first) != 1:
        return None
    (wrapper,) = first
    nodes = tuple(
        replace(node, module=node.module[len(wrapper) + 1 :])
        if node.module and node.module.partition(".")[0] == wrapper
        else node
        for node in graph.nodes
    )
    return replace(graph, nodes=nodes)


def matches_rule(graph: JointGraph, rule: PolicyRule, made: Made) -> bool:
    """Whether all conditions of a rule hold for some memory."""
    if rule.min_bytes is not None and made.nbytes < rule.min_bytes:
        return False
    if rule.max_bytes is not None and made.nbytes > rule.max_bytes:
        return False
    explicit = rule.op is not None or rule.name is not None
    return any(_matches(graph, rule, made, member) for member in (made.members if explicit else made.members[:1]))


def _matches(graph: JointGraph, rule: PolicyRule, made: Made, member: int) -> bool:
    node = graph.nodes[member]
    if rule.module is not None and not matches_module(rule.module, node.module, submodules=rule.submodules):
        return False
    if rule.op is not None and not matches_op(rule.op, graph, node):
        return False
    if rule.line is not None and not matches_line(rule.line, node.source):
        return False
    if rule.name is None:
        return True
    names = [node.name, graph.nodes[made.op].name] if member == made.maker else [node.name]
    return any(fnmatchcase(name, rule.name) for name in names)


def _renamed(
    wishes: Mapping[str, PolicyRule], replaced: Mapping[str, str], own: Collection[str]
) -> dict[str, PolicyRule]:
    """Wishes by the names that stand; `own` are the names of which anything was asked."""
    renamed = {name: rule for name, rule in wishes.items() if name not in replaced}
    for name, rule in wishes.items():
        while name in replaced:
            name = replaced[name]
        if name not in own:
            renamed.setdefault(name, rule)
    return renamed
