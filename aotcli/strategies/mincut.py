"""`mincut`: the published min-cut heuristic (aotcli/analysis/mincut.py says how it works and where it comes from)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from aotcli.analysis.assemble import assemble
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.wishes import NO_WISHES, Wishes
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition
from aotcli.strategies._contract import Strategy


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class MinCut(Strategy):
    """Save what weighs least, recompute only what is cheap. The plan that `torch.compile` makes by default."""

    name: ClassVar[str] = "mincut"
    summary: ClassVar[str] = "save the fewest bytes, recompute only cheap, fusible ops (what torch.compile does)"

    op_set: Literal["inductor", "nvfuser"] = _option(
        "inductor", "which ops may be recomputed: the installed PyTorch's, or the narrower published set"
    )
    recomputable_ops: str = _option("", "comma list of ops that replaces the recomputable ones of the set")
    cse: bool = _option(True, "merge ops that compute the same thing first")
    aggressive: bool = _option(False, "recompute whatever is neither random nor compute intensive nor a reduction")
    max_distance: int = _option(1000, "do not recompute what is farther than this from the backward, in ops")
    ban_non_builtin: bool = _option(False, "with aggressive: do not recompute ops from outside PyTorch")

    def __post_init__(self) -> None:
        if self.max_distance < 0:
            raise StrategyError(
                f"max-distance is {self.max_distance}", why="it counts ops", fix="give a number from 0; default 1000"
            )

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        return assemble(graph, self.decide_with(graph), strategy=self.name, options=self.options)

    def decide_with(self, graph: JointGraph, wishes: Wishes = NO_WISHES) -> Decision:
        """What is saved of `graph` with these options, and with what a user wishes beside them."""
        return decide(graph, self.heuristic, cse=self.cse, wishes=wishes)

    @property
    def heuristic(self) -> Heuristic:
        """The options that are the heuristic's own."""
        return Heuristic(
            op_set=self.op_set,
            recomputable_ops=self.recomputable_ops,
            aggressive=self.aggressive,
            max_distance=self.max_distance,
            ban_non_builtin=self.ban_non_builtin,
        )
