"""Why a plan treats values as it does: each group of alike values with its origin, its readers, the rule, the cost of
doing otherwise, and the annotation that would do it.

    explain_groups.py  which values        explain_rules.py  what the rule looked at
    explain_readers.py who needs them      explain_cost.py   what running again costs
    explain_flip.py    what turns it round explain_change.py what comes of that
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aotcli.analysis.explain_cost import chain_to
from aotcli.analysis.explain_flip import Flipped, Replan, flip_group
from aotcli.analysis.explain_groups import Group
from aotcli.analysis.explain_readers import leads_to, readers_of
from aotcli.analysis.explain_region import PlannedRegion
from aotcli.analysis.explain_rules import Evidence, rule_facts, weight_of
from aotcli.analysis.layers import module_label, module_names
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Rule
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Explanation, Place
from aotcli.ir.joint import NodeKind
from aotcli.ir.partition import Category
from aotcli.ir.tensor import TensorSpec

_PLACEHOLDERS = {
    NodeKind.PARAM: "a parameter: in memory anyway",
    NodeKind.BUFFER: "a buffer: in memory anyway",
    NodeKind.INPUT: "an input of the step: in memory anyway",
    NodeKind.TANGENT: "a tangent: the gradient that the backward starts from",
    NodeKind.SEED: "a random seed of the forward",
    NodeKind.BACKWARD_SEED: "a random seed of the backward",
}


@dataclass(frozen=True)
class Planned:
    """A step under a plan, and how to plan it once more. `evidence` is the min cut's, by region, None where the plan is
    another strategy's."""

    regions: Sequence[PlannedRegion]
    evidence: Sequence[Evidence | None]
    replan: Replan


def explain_group(planned: Planned, group: Group) -> Explanation:
    """All there is to say about a group of values."""
    if group.fate in (Fate.SAVED, Fate.RECOMPUTED) and group.made:
        flipped = flip_group(planned.regions, group, planned.replan)
        return _saved(planned, group, flipped) if group.fate is Fate.SAVED else _recomputed(planned, group, flipped)
    return _other(planned, group)


def _saved(planned: Planned, group: Group, flipped: Flipped) -> Explanation:
    region, found = planned.regions[group.region], planned.evidence[group.region]
    first = group.made[0]
    saved = region.saved_values(first)
    names = [value.name for value in saved]
    after = None if flipped.regions is None else flipped.regions[group.region]
    chain = None
    if after is not None:
        maker = region.graph.nodes[first.maker].name
        chain = chain_to(after, maker, region) or chain_to(after, region.graph.nodes[first.op].name, region)
    return replace(
        _base(region, group),
        category=saved[0].category,
        saved_as=tuple(names),
        reason=saved[0].reason,
        facts=() if found is None else rule_facts(found, names[0], region.graph.nodes[first.maker].name),
        weight=None if found is None else weight_of(found, names[0]),
        without_rule="" if found is None else _without_rule(region, found, group),
        readers=readers_of(region, names),
        chain=chain,
        flip=flipped.flip,
    )


def _recomputed(planned: Planned, group: Group, flipped: Flipped) -> Explanation:
    region = planned.regions[group.region]
    first = group.made[0]
    op = region.graph.nodes[first.op]
    notes: list[str] = []
    if op.must_recompute:
        notes.append(f"its checkpoint policy is {op.checkpoint}")
    return replace(
        _base(region, group),
        readers=readers_of(region, [region.graph.nodes[first.maker].name]),
        chain=chain_to(region, region.graph.nodes[first.maker].name),
        flip=flipped.flip,
        notes=tuple(notes),
    )


def _without_rule(region: PlannedRegion, found: Evidence, group: Group) -> str:
    """What would become of the first value if the rule did not hold for it and its like."""
    pairs = [(value.name, value.reason.rule) for each in group.made for value in region.saved_values(each)]
    if not pairs or pairs[0][1] in (Rule.CUT, Rule.NEEDED):
        return ""
    decision = decide(region.graph, found.problem.heuristic, cse=found.cse, ignored=pairs, wishes=found.wishes)
    reasons = dict(decision.saved)
    first = [reasons[name] for name in region.names(group.made[0]) if name in reasons]
    return f"saved all the same ({first[0].rule})" if first else "recomputed"


def _other(planned: Planned, group: Group) -> Explanation:
    """Values about which there is nothing to decide."""
    region = planned.regions[group.region]
    names = _names(region, group)
    first = region.graph[names[0]]
    notes = [_PLACEHOLDERS[first.kind]] if first.kind in _PLACEHOLDERS else []
    value = region.saved.get(names[0]) or next(iter(region.saved_values(group.made[0]) if group.made else ()), None)
    if value is not None and not notes:
        notes.append(_kept(value.category))
    return replace(
        _base(region, group),
        category=value.category if value is not None else Category.NONE,
        saved_as=(value.name,) if value is not None else (),
        reason=value.reason if value is not None else None,
        readers=readers_of(region, [names[0] if value is None else value.name]),
        leads_to=_needs(region, names[0]) if group.fate is Fate.BACKWARD else _leads(region, group, names),
        notes=tuple(notes),
    )


def _kept(category: Category) -> str:
    return {
        Category.OUTPUT: "a result of the step, which the caller holds anyway",
        Category.PARAMETER: "a view of a parameter: in memory anyway",
        Category.BUFFER: "a view of a buffer: in memory anyway",
        Category.INPUT: "a view of an input: in memory anyway",
    }.get(category, "no tensor: it takes no memory")


def _leads(region: PlannedRegion, group: Group, names: Sequence[str]) -> tuple[Place, ...]:
    return leads_to(region, names[:1]) if group.fate is Fate.FORWARD else ()


def _needs(region: PlannedRegion, name: str) -> tuple[Place, ...]:
    """What of the forward a backward op reads."""
    node = region.backward_half.get(name)
    read = () if node is None else node.refs
    return tuple(region.place(each) for each in read if each in region.saved or each in region.recomputed)


def _base(region: PlannedRegion, group: Group) -> Explanation:
    """What is to be said of any value."""
    graph = region.graph
    names = _names(region, group)
    nodes = [graph[name] for name in names]
    value = nodes[0].value
    spec = value if isinstance(value, TensorSpec) else None
    return Explanation(
        region=graph.name,
        fate=group.fate,
        place=region.place(names[0]),
        count=len(names),
        names=names,
        modules=module_names([node.module for node in nodes]) if len(names) > 1 else module_label(nodes[0].module),
        shape=() if spec is None else spec.shape,
        dtype="" if spec is None else spec.dtype,
        nbytes=0 if spec is None else spec.storage_nbytes,
        total_bytes=sum(node.value.storage_nbytes for node in nodes if isinstance(node.value, TensorSpec)),
    )


def _names(region: PlannedRegion, group: Group) -> tuple[str, ...]:
    return group.nodes or tuple(region.graph.nodes[each.maker].name for each in group.made)
