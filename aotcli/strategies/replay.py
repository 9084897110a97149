"""Apply a plan that was made before: ``aotcli partition MODEL -o X.aot.json``, then ``--strategy replay:X.aot.json``.

A plan names values by their place in the canonical order of the fingerprinted graph, so that it fits the same graph in
any process, and no other. With `force_match` a plan for another version of the model is applied as far as it goes:
values are paired by module path, op, and how many such ops come before in that module; what the backward still
needs is recomputed where that is safe, and saved where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble
from aotcli.analysis.owners import with_owners
from aotcli.errors import StrategyError
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.plan import Plan, PlanRegion, decision_from_plan, describe_op, first_difference, module_ordinals
from aotcli.ir.serial import read_plan
from aotcli.ir.tensor import tensor_leaves
from aotcli.strategies._contract import Strategy
from aotcli.strategies.recompute_all import decide

_Key = tuple[str | None, str, int]


@dataclass(frozen=True)
class Replay(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "replay"
    summary: ClassVar[str] = "apply a plan file that `aotcli partition -o X.aot.json` wrote (replay:X.aot.json)"
    argument: ClassVar[str | None] = "file"

    file: str = field(default="", metadata={"help": "the plan file"})
    force_match: bool = field(
        default=False, metadata={"help": "apply a plan for another graph, pairing values by module path"}
    )

    def __post_init__(self) -> None:
        if self.file and not Path(self.file).is_file():
            raise StrategyError(
                f"there is no plan file {self.file}",
                why="replay applies a plan that was written before",
                fix="make one: aotcli partition MODEL -o X.aot.json",
            )

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        if not self.file:
            raise StrategyError(
                "replay needs a plan file",
                why="it applies a plan that was written before",
                fix="aotcli partition MODEL -o X.aot.json, then --strategy replay:X.aot.json",
            )
        if not graph.has_backward:
            decision = Decision(saved=())
        else:
            decision = _decision(graph, read_plan(self.file), self.file, forced=self.force_match)
        return assemble(graph, decision, strategy=self.name, options=self.options)


def _decision(graph: JointGraph, plan: Plan, path: str, *, forced: bool) -> Decision:
    """The decision of `plan` for `graph`. Raises StrategyError where the plan is for something else."""
    for region in plan.regions:
        if region.fingerprint == graph.fingerprint:
            return decision_from_plan(graph, region)
    if not plan.regions:
        raise _refused(path, graph, "it holds no region", "make it again")
    region = _nearest(graph, plan)
    if forced:
        return _matched(graph, region)
    if plan.level != graph.level:
        backend = "inductor" if plan.level == "inductor" else "aot_eager"
        raise _refused(
            path,
            graph,
            f"it was made at level {plan.level}, and this graph is at level {graph.level}",
            f'run it there (--level {plan.level}, backend="{backend}"), or plan again at level {graph.level}',
        )
    devices = _device_types(graph)
    if devices and plan.device not in devices:
        here = " and ".join(sorted(devices))
        raise _refused(path, graph, f"it was made on {plan.device}, and this graph is on {here}", "plan again there")
    raise _refused(
        path,
        graph,
        f"first difference: {first_difference(graph, region)}",
        "plan again for this model, with the same torch; or apply what fits with force_match",
    )


def _refused(path: str, graph: JointGraph, why: str, fix: str) -> StrategyError:
    return StrategyError(f"the plan {path} is not for this graph ({graph.name})", why=why, fix=fix)


def _nearest(graph: JointGraph, plan: Plan) -> PlanRegion:
    """The region whose place in the step, or else whose length, is that of `graph`."""
    return min(plan.regions, key=lambda each: (each.name != graph.name, abs(len(each.sequence) - len(graph.nodes))))


def _device_types(graph: JointGraph) -> set[str]:
    leaves = (leaf for node in graph.nodes for leaf in tensor_leaves(node.value))
    return {leaf.device.partition(":")[0] for leaf in leaves}


def _matched(graph: JointGraph, region: PlanRegion) -> Decision:
    """Save what can be paired with a saved value of the plan, and recompute the rest as recompute-all does."""
    owned = with_owners(graph)
    order = canonical_order(owned)
    here: dict[_Key, str] = {}
    for position, ordinal in zip(order, module_ordinals(owned, order), strict=True):
        node = owned.nodes[position]
        here[node.module, describe_op(node), ordinal] = node.name
    wanted = [value for value in region.saved if value.kind == "tensor" and value.id < len(region.sequence)]
    ops = [region.words[region.sequence[each.id]].partition(" ")[0] for each in wanted]
    pairs = [here.get((each.module, op, each.ordinal)) for each, op in zip(wanted, ops, strict=True)]
    keep = {
        name: Reason(value.rule, value.reason) for name, value in zip(pairs, wanted, strict=True) if name is not None
    }
    decision = decide(graph, keep=keep)
    missing = [value.name for value, name in zip(wanted, pairs, strict=True) if name is None]
    note = f"{len(keep)} of {len(wanted)} saved values of the plan were found by module path"
    if missing:
        note += f"; not found: {', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}"
    return replace(decision, notes=(*decision.notes, note))
