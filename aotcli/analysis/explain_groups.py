"""Which values to explain: those that a pattern means, or the largest, with values that repeat by layer as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aotcli.analysis.explain_find import Found, matches_node
from aotcli.analysis.explain_region import PlannedRegion, is_free
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import node_label
from aotcli.analysis.wishes import Made, matches_rule
from aotcli.ir.difference import Fate
from aotcli.ir.joint import Node, NodeKind
from aotcli.ir.tensor import TensorSpec

DECIDED = frozenset({Fate.SAVED, Fate.RECOMPUTED})
_ORDER = (Fate.SAVED, Fate.RECOMPUTED, Fate.KEPT, Fate.FORWARD, Fate.BACKWARD, Fate.UNUSED)


@dataclass(frozen=True, slots=True)
class Group:
    """Values of one region that are alike: memory of the forward in `made`, or other nodes, by name, in `nodes` (what
    the backward computes, placeholders, sizes)."""

    region: int
    fate: Fate
    made: tuple[Made, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.made)


def largest_groups(regions: Sequence[PlannedRegion]) -> list[Group]:
    """All saved activations, the largest first."""
    return _sorted(
        group
        for number, region in enumerate(regions)
        for group in _made_groups(number, region, region.made)
        if group.fate is Fate.SAVED
    )


def groups_of(regions: Sequence[PlannedRegion], found: Found) -> list[Group]:
    """What a pattern means: what is saved first, then what is recomputed, each the largest first.

    A pattern that means many things is about what a plan decides: what is neither saved nor recomputed is left out,
    unless there is nothing else.
    """
    groups: list[Group] = []
    for number in found.regions:
        groups += _exact(number, regions[number], found) if found.exact else _matching(number, regions[number], found)
    decided = [group for group in groups if group.fate in DECIDED]
    return _sorted(decided if decided and not found.exact else groups)


def _sorted(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: (_ORDER.index(group.fate), -group.nbytes, group.region))


def _exact(number: int, region: PlannedRegion, found: Found) -> list[Group]:
    """Nodes asked for by name: each as it is, and with an op that returns a tuple, its parts."""
    groups: list[Group] = []
    for node in region.graph.nodes:
        if node.kind is NodeKind.OUTPUT or not any(matches_node(region.graph, rule, node) for rule in found.rules):
            continue
        standing = region.standing(node.name)
        position = region.graph.index[standing]
        made = [each for each in region.made if position in each.members or position == each.op]
        if made:
            groups += [Group(number, region.fate(each), (each,)) for each in made]
        else:
            groups.append(Group(number, region.fate_of(standing), nodes=(standing,)))
    return groups


def _matching(number: int, region: PlannedRegion, found: Found) -> list[Group]:
    graph, rules = region.graph, found.rules
    made = [each for each in region.made if any(matches_rule(graph, rule, each) for rule in rules)]
    if not any(region.fate(each) in DECIDED for each in made):
        # Nothing of what is made there; perhaps what is handed on from there, as a view of what was made elsewhere.
        made += [each for each in region.made if each not in made and _saved_there(region, found, each)]
    groups = _made_groups(number, region, made)
    if any(group.fate in DECIDED for group in groups) or any(rule.sizes for rule in rules):
        return groups
    inside = {position for each in made for position in (each.op, *each.members)}
    others = [
        node
        for position, node in enumerate(graph.nodes)
        if position not in inside
        and not is_free(node)
        and node.kind not in (NodeKind.OUTPUT, NodeKind.ATTR)
        and any(matches_node(graph, rule, node) for rule in rules)
    ]
    return groups + _node_groups(number, region, others)


def _saved_there(region: PlannedRegion, found: Found, made: Made) -> bool:
    graph = region.graph
    return any(
        matches_node(graph, rule, graph[value.name]) for value in region.saved_values(made) for rule in found.rules
    )


def _made_groups(number: int, region: PlannedRegion, made: Iterable[Made]) -> list[Group]:
    groups: dict[tuple[object, ...], list[Made]] = {}
    for each in made:
        node = region.graph.nodes[each.maker]
        assert isinstance(node.value, TensorSpec)  # memory is a tensor's
        saved = region.saved_values(each)
        rule = saved[0].reason.rule if saved else ""
        key = (region.fate(each), *_likeness(region, node), node.value.shape, node.value.dtype, rule)
        groups.setdefault(key, []).append(each)
    return [Group(number, region.fate(members[0]), tuple(members)) for members in groups.values()]


def _node_groups(number: int, region: PlannedRegion, nodes: Iterable[Node]) -> list[Group]:
    groups: dict[tuple[object, ...], list[str]] = {}
    for node in nodes:
        key = (region.fate_of(node.name), node.kind, *_likeness(region, node))
        groups.setdefault(key, []).append(node.name)
    return [Group(number, region.fate_of(names[0]), nodes=tuple(names)) for names in groups.values()]


def _likeness(region: PlannedRegion, node: Node) -> tuple[str | None, str]:
    label = layer_pattern(node_label(region.graph, node)) if node.is_placeholder else node_label(region.graph, node)
    return None if node.module is None else layer_pattern(node.module), label
