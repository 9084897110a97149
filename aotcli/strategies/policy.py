"""`policy`: a policy file says what is saved and what is recomputed, and `mincut` decides the rest.

The file's rules (aotcli/ir/policy.py) mean what checkpoint tags mean: SAVE on a view falls on its base, on a tuple on
its parts; RECOMPUTE means not saved, and is never forced to run. A rule goes before the tags of the model's own
checkpoints. What is compiled may wrap the model in an attribute (`module` of DistributedDataParallel, `model` of a step
with its loss): where no rule on modules fits the paths as they are, they are tried without it.
aotcli/analysis/wishes.py matches rules, aotcli/analysis/mincut_wishes.py brings them into the cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble
from aotcli.analysis.owners import with_owners
from aotcli.analysis.wishes import match_wrapped
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition
from aotcli.ir.policy import PolicyRule, read_policy
from aotcli.strategies.mincut import MinCut


@dataclass(frozen=True)
class Policy(MinCut):
    """See the module's docstring."""

    name: ClassVar[str] = "policy"
    summary: ClassVar[str] = "save and recompute what a policy file says, and cut the rest as mincut does (policy:FILE)"
    argument: ClassVar[str | None] = "policy"

    policy: str = field(default="", metadata={"help": "the policy file (TOML)"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy and not Path(self.policy).is_file():
            raise StrategyError(
                f"there is no policy file {self.policy}",
                why="policy reads what to save and to recompute from a file",
                fix="write one (docs/strategies.md), or let `aotcli explain MODEL NAME --write-policy FILE.toml`",
            )

    def rules(self) -> tuple[PolicyRule, ...]:
        """The rules of the file. Raises StrategyError where none was named, ConfigError where it is no policy."""
        if not self.policy:
            raise StrategyError(
                "policy needs a policy file",
                why="the file says which values to save and to recompute",
                fix="--strategy policy --policy FILE.toml",
            )
        return read_policy(self.policy)

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        return assemble(graph, self.decide(graph, self.rules()), strategy=self.name, options=self.options)

    def decide(self, graph: JointGraph, rules: tuple[PolicyRule, ...]) -> Decision:
        """What is saved of `graph` under `rules`, the first that matches a value before the others.

        Raises PlanImpossibleError, which names the rules, where the backward needs a value that they allow neither to
        save nor to compute.
        """
        if not graph.has_backward:
            return Decision(saved=())
        matched = match_wrapped(with_owners(graph), rules)
        decision = self.decide_with(graph, matched.wishes)
        return replace(decision, notes=(*decision.notes, *matched.notes))
