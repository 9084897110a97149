"""Strategies that weigh what is saved against what recomputing costs: how costs are counted is their options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from aotcli.analysis.budgeting import Budgeting, pose_budgeting
from aotcli.analysis.hardware import Hardware, find_hardware
from aotcli.analysis.rerun_cost import RerunCosts, flop_costs, roofline_costs
from aotcli.ir.joint import JointGraph
from aotcli.ir.tensor import tensor_leaves
from aotcli.strategies._contract import Strategy

_LISTED = 4


@dataclass(frozen=True)
class Priced(Strategy):
    """A strategy with prices for running ops again."""

    cost: Literal["roofline", "flops"] = field(default="roofline", metadata={"help": "what recomputing is measured in"})
    hardware: str = field(
        default="", metadata={"help": "for roofline: cpu, a100, h100, h200 or FILE.toml; by default as traced"}
    )
    fused: bool | None = field(
        default=None, metadata={"help": "for roofline: charge pointwise chains once; by default at level inductor"}
    )
    cse: bool = field(default=True, metadata={"help": "merge common subexpressions first"})

    def pose(self, graph: JointGraph) -> Budgeting:
        """The trade-off of a graph at the costs of these options."""
        return pose_budgeting(graph, self.costs, cse=self.cse)

    def costs(self, graph: JointGraph) -> RerunCosts:
        """What rerunning each node costs with these options, by position."""
        if self.cost == "flops":
            return flop_costs(graph)
        return roofline_costs(graph, self._profile(graph), fused=self._fuses(graph))

    def pricing(self, graph: JointGraph) -> str:
        """How costs are counted with these options, in words."""
        if self.cost == "flops":
            return "FLOPs"
        chains = "pointwise chains fused" if self._fuses(graph) else "each op by itself"
        return f"roofline time, {self._profile(graph).name}, {chains}"

    def _profile(self, graph: JointGraph) -> Hardware:
        return find_hardware(self.hardware, _device_type(graph))

    def _fuses(self, graph: JointGraph) -> bool:
        return graph.level == "inductor" if self.fused is None else self.fused


def amount_text(value: float, unit: str) -> str:
    """A cost in words: a time of picoseconds, or FLOPs."""
    if unit == "ps":
        return f"{value / 1e9:,.4g} ms" if value < 1e12 else f"{value / 1e12:,.3g} s"
    return f"{value / 1e9:.4g} GFLOP"


def unknown_notes(costs: RerunCosts) -> tuple[str, ...]:
    """Which ops compute by no known formula, where there are any."""
    if not costs.unknown:
        return ()
    more = f" and {len(costs.unknown) - _LISTED} more" if len(costs.unknown) > _LISTED else ""
    return (f"no formula is known for the FLOPs of {', '.join(costs.unknown[:_LISTED])}{more}",)


def _device_type(graph: JointGraph) -> str:
    """Where most of the graph's tensors are; "cpu" without any."""
    devices = [leaf.device.partition(":")[0] for node in graph.nodes for leaf in tensor_leaves(node.value)]
    return max(sorted(set(devices)), key=devices.count, default="cpu")
