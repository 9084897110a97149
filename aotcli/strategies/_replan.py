"""A plan made once more with wishes beside it: what `explain` tries, and what `--save` and `--recompute` show.

`mincut` and `policy` take wishes into their cut. Other strategies that plan from a record take them as the checkpoint
tags that they honour anyway. What neither can be asked (PyTorch's own plans, a plan file) is changed only as far as the
wishes go: all else that it saves stays saved, and what is missing then is recomputed where that is safe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aotcli.analysis.assemble import assemble
from aotcli.analysis.mincut_mutation import mutated_reads
from aotcli.analysis.rerun import Rerun
from aotcli.analysis.roles import classify
from aotcli.analysis.wishes import Made, Wishes, made_values, match_rules
from aotcli.errors import PlanImpossibleError
from aotcli.ir.joint import JointGraph, Node
from aotcli.ir.partition import Partition, Reason
from aotcli.ir.policy import PolicyRule
from aotcli.strategies._contract import Strategy
from aotcli.strategies.mincut import MinCut
from aotcli.strategies.policy import Policy
from aotcli.strategies.recompute_all import decide
from aotcli.strategies.replay import Replay

WISHED = "policy"
"""The strategy's name on plans that hold wishes."""


def own_rules(strategy: Strategy) -> tuple[PolicyRule, ...]:
    """The rules that a strategy brings along."""
    return strategy.rules() if isinstance(strategy, Policy) else ()


def replan(
    strategy: Strategy,
    graph: JointGraph,
    partition: Partition,
    rules: Sequence[PolicyRule],
    made: Sequence[Made] | None = None,
) -> Partition:
    """The plan of `graph` under `rules`, which go before those of the strategy; `partition` is the plan without them,
    and comes back where they mean nothing here; `made` is the graph's memory, where it is known already.

    Raises PlanImpossibleError, which names the rules, where they ask for what cannot be.
    """
    made = made_values(graph) if made is None else made
    wishes = match_rules(graph, rules, made).wishes
    if not wishes or not graph.has_backward:
        return partition
    options = strategy.options
    if isinstance(strategy, MinCut):
        both = match_rules(graph, (*rules, *own_rules(strategy)), made).wishes
        return assemble(graph, strategy.decide_with(graph, both), strategy=WISHED, options=options)
    _refuse_reruns(graph, made, wishes)
    if not strategy.needs_live and not isinstance(strategy, Replay):
        return strategy.plan(_tagged(graph, made, wishes))
    return _amended(graph, partition, made, wishes, options)


def _refuse_reruns(graph: JointGraph, made: Sequence[Made], wishes: Wishes) -> None:
    rerun = Rerun(graph, mutated_reads(graph, classify(graph)))
    for each in made:
        rule = wishes.recompute.get(graph.nodes[each.maker].name)
        forbidden = rerun.forbidden(each.op) if rule is not None else None
        if forbidden is not None:
            node = graph.nodes[each.op]
            raise PlanImpossibleError(
                f"{node.name} ({node.target}) can not be recomputed",
                why=f"{node.name} may not run again ({forbidden.text}), and {rule} asks for it",
                fix=f"take back {rule}",
            )


def _tagged(graph: JointGraph, made: Sequence[Made], wishes: Wishes) -> JointGraph:
    """`graph` with wishes as checkpoint tags. The fingerprint stays: it holds no tags."""
    tags: dict[int, str] = {}
    for each in made:
        name = graph.nodes[each.maker].name
        if name in wishes.save:
            tags.update(dict.fromkeys((each.op, each.maker), "MUST_SAVE"))
        elif name in wishes.recompute:
            tags.update(dict.fromkeys((each.op, *each.members), "MUST_RECOMPUTE"))
    nodes = tuple(_with_tag(node, tags.get(position)) for position, node in enumerate(graph.nodes))
    return dataclasses.replace(graph, nodes=nodes)


def _with_tag(node: Node, tag: str | None) -> Node:
    return node if tag is None else dataclasses.replace(node, checkpoint=tag, ac_graph_id=None)


def _amended(
    graph: JointGraph, partition: Partition, made: Sequence[Made], wishes: Wishes, options: dict[str, object]
) -> Partition:
    """`partition` with what is wished for saved, or not saved, and all else that it saves."""
    keep = {value.name: value.reason for value in partition.saved}
    for each in made:
        name = graph.nodes[each.maker].name
        if name in wishes.recompute:
            for position in each.members:
                keep.pop(graph.nodes[position].name, None)
        elif name in wishes.save and name not in keep:
            keep[name] = Reason("must save", wishes.save[name].label)
    decision = decide(graph, cse=bool(partition.replaced), keep=keep)
    return assemble(graph, decision, strategy=WISHED, options=options)
