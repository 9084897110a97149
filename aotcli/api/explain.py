"""Why a plan saves or recomputes what it does, and what wishes would change."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aotcli.analysis.explain import Planned, explain_group
from aotcli.analysis.explain_change import change_between
from aotcli.analysis.explain_find import find
from aotcli.analysis.explain_groups import Group, groups_of, largest_groups
from aotcli.analysis.explain_region import PlannedRegion
from aotcli.analysis.explain_rules import Evidence, evidence
from aotcli.analysis.summary import Plan
from aotcli.analysis.wishes import match_rules
from aotcli.api.choice import choose_strategies
from aotcli.errors import InputError
from aotcli.ir.explanation import Change, Explanation
from aotcli.ir.joint import JointGraph
from aotcli.ir.policy import Action, PolicyRule
from aotcli.ir.trace import Trace
from aotcli.render.page import Page
from aotcli.strategies import Strategy
from aotcli.strategies._replan import own_rules, replan
from aotcli.strategies.mincut import MinCut

if TYPE_CHECKING:
    from aotcli.analysis.explain_checkpoint import CheckpointPolicy

DEFAULT_TOP = 5


@dataclass(frozen=True, repr=False)
class ExplanationResult:
    """Explanations of one plan, the largest values first, and what wishes change. Printing it shows what the command
    line shows.

    `hidden` are further kinds of values that were left out; `pattern` is what was asked about, None for the largest
    values; `wishes` are the rules of `save` and `recompute`, `change` what they do to the plan that is explained
    otherwise; with wishes `plan` is the plan that holds them.
    """

    trace: Trace
    plan: Plan
    explanations: tuple[Explanation, ...]
    hidden: int = 0
    pattern: str | None = None
    wishes: tuple[PolicyRule, ...] = ()
    change: Change | None = None
    rules: tuple[PolicyRule, ...] = field(default=(), kw_only=True)
    strategy: Strategy = field(default_factory=MinCut, kw_only=True)
    target: str = field(default="MODEL", kw_only=True)
    cached: bool = field(default=False, kw_only=True)

    def text(self, page: Page | None = None, *, quiet: bool = False) -> str:
        """Explanations for a terminal."""
        from aotcli.render.explain_text import ExplainView, render_explain_text

        view = ExplainView(self.pattern, self.hidden, self.change, self.words, quiet=quiet, cached=self.cached)
        return render_explain_text(self.trace, self.plan, self.explanations, page or Page(), view)

    def markdown(self) -> str:
        """The same as GitHub-flavoured Markdown."""
        from aotcli.render.explain_markdown import render_explain_markdown

        return render_explain_markdown(self.trace, self.plan, self.explanations, self.change, self.words)

    def json(self) -> str:
        """The same as JSON of schema "aotcli.explanation"."""
        from aotcli.render.explain_json import render_explain_json

        return render_explain_json(self.trace, self.plan, self.explanations, self.change, self.wishes)

    @property
    def words(self) -> str:
        """Model, settings and strategy, as a command line names them."""
        strategy = "" if self.plan.label == "mincut" else f"-s {shlex.quote(self.plan.label)}"
        return " ".join(word for word in (self.target, strategy) if word)

    @property
    def policy(self) -> tuple[PolicyRule, ...]:
        """The rules worth writing down: the wishes and those that the plan was made with; where there are none, what
        would turn round the decisions that are explained."""
        if self.wishes or self.rules:
            return (*self.wishes, *self.rules)
        flips = [each.flip for each in self.explanations if each.flip is not None and each.flip.change is not None]
        # Turning round what is saved and what is recomputed at once would undo the one by the other.
        rules = dict.fromkeys(rule for flip in flips for rule in flip.rules)
        return tuple(rule for rule in rules if rule.action is next(iter(rules)).action)

    def policy_text(self) -> str:
        """A policy file (TOML) of `policy`. Raises InputError where there is no rule to write."""
        from aotcli.ir.policy import policy_text

        return policy_text(self._checked_policy(), [f"aotcli partition {self.target} --strategy policy --policy FILE"])

    def checkpoint(self) -> CheckpointPolicy:
        """`policy` as a selective checkpoint of the model's own code, with what it cannot say.

        Raises InputError where there is no rule, or where nothing of it can be said.
        """
        from aotcli.analysis.explain_checkpoint import as_checkpoint

        plain = self.strategy if isinstance(self.strategy, MinCut) else MinCut()
        return as_checkpoint(self.trace.regions, self._checked_policy(), plain.heuristic, cse=plain.cse)

    def checkpoint_python(self) -> str:
        """`checkpoint` as a Python module."""
        from aotcli.render.explain_python import render_checkpoint_python

        return render_checkpoint_python(self.trace, self.checkpoint())

    def _checked_policy(self) -> tuple[PolicyRule, ...]:
        if not self.policy:
            raise InputError(
                "there is no rule to write",
                why="no wish was given, and no decision that is explained can be turned round",
                fix="say what you want: --save PATTERN or --recompute PATTERN",
            )
        return self.policy

    def __repr__(self) -> str:
        return self.text()


def explain(
    model: Any,
    pattern: str | None = None,
    *,
    inputs: Any = None,
    top: int = DEFAULT_TOP,
    save: Sequence[str] = (),
    recompute: Sequence[str] = (),
    strategy: str | Strategy = "mincut",
    options: Mapping[str, object] | None = None,
    progress: Callable[[str], None] | None = None,
    **planning: Any,
) -> ExplanationResult:
    """Say why a training step saves, or recomputes, what it does.

    `model`, `inputs`, `strategy`, `options` and `planning` are what `aotcli.partition` takes. `pattern` is the name of
    a node or parameter, a glob over modules (``h.0``, ``h.*.attn``), a module and an op (``h.*.gelu``), a glob over ops
    or a line (``gpt.py:29``); without it the `top` largest values are explained. `save` and `recompute` are such
    patterns, too: what the plan would be if these values were saved, or not saved.

    Raises InputError for a pattern that matches nothing, PlanImpossibleError for wishes that cannot be met together,
    and what `partition` raises.
    """
    from aotcli import api

    (chosen,) = choose_strategies(strategy, options)
    planning |= {"strategy": strategy, "options": options, "alternatives": False, "progress": progress}
    result = api.partition(model, inputs, **planning)
    graphs = result.trace.regions
    wishes = _wishes(graphs, save, recompute)
    before = [PlannedRegion(graph, plan) for graph, plan in zip(graphs, result.plan.partitions, strict=True)]
    after = _replanned(chosen.strategy, before, wishes)
    planned = Planned(
        after,
        _evidence(chosen.strategy, graphs, wishes),
        lambda rules: _replanned(chosen.strategy, after, (*rules, *wishes), changed_by=rules),
    )
    plan = result.plan
    if wishes:
        plan = dataclasses.replace(plan, partitions=tuple(region.partition for region in after), usage=())
    if pattern is not None:
        groups = groups_of(after, find(graphs, pattern, [region.all_made for region in after]))
    else:
        groups = [] if wishes else largest_groups(after)
    return ExplanationResult(
        result.trace,
        plan,
        tuple(_explained(planned, groups[:top], progress)),
        max(0, len(groups) - top),
        pattern,
        wishes,
        change_between(before, after) if wishes else None,
        rules=own_rules(chosen.strategy),
        strategy=chosen.strategy,
        target=result.target,
        cached=result.cached,
    )


def _explained(
    planned: Planned, groups: Sequence[Group], progress: Callable[[str], None] | None
) -> Iterator[Explanation]:
    for number, group in enumerate(groups, 1):
        if progress is not None:
            progress(f"explaining {number} of {len(groups)}")
        yield explain_group(planned, group)


def _wishes(graphs: Sequence[JointGraph], save: Sequence[str], recompute: Sequence[str]) -> tuple[PolicyRule, ...]:
    """Patterns as rules. Raises InputError for one that means nothing that could be saved, and for a value that is
    asked to be both saved and recomputed."""
    asked = [(Action.SAVE, pattern) for pattern in save] + [(Action.RECOMPUTE, pattern) for pattern in recompute]
    rules: list[PolicyRule] = []
    taken: dict[tuple[str, int], PolicyRule] = {}
    for action, pattern in asked:
        label = f"--{action} {pattern}"
        found = find(graphs, pattern)
        if found.restricted:
            why = "a wish holds in every region, as a rule of a policy file does"
            raise InputError(f"{label} names a region", why=why, fix=f"--{action} {pattern.partition(':')[2]}")
        meant = found.asking(action, label)
        matches = [(graph, match_rules(graph, meant)) for graph in graphs]
        makers = [(graph.name, maker) for graph, match in matches for own in match.makers for maker in own]
        if not makers:
            raise InputError(
                f"{label}: nothing there is the forward's to save",
                why="what matches is a parameter, an input, a size, or computed in the backward",
                fix=f"aotcli explain MODEL {pattern} says what it is",
            )
        for place in makers:
            other = taken.setdefault(place, meant[0])
            if other.action is not action:
                raise InputError(f"{other.label} and {label} mean the same value", fix="leave one of them out")
        rules += meant
    return tuple(rules)


def _replanned(
    strategy: Strategy,
    regions: Sequence[PlannedRegion],
    rules: Sequence[PolicyRule],
    changed_by: Sequence[PolicyRule] | None = None,
) -> list[PlannedRegion]:
    """The regions planned under `rules`; as they are, where those of `changed_by` (all, where None) mean nothing."""
    replanned: list[PlannedRegion] = []
    for region in regions:
        changing = rules if changed_by is None else changed_by
        if match_rules(region.graph, changing, region.all_made).wishes:
            region = region.under(replan(strategy, region.graph, region.partition, rules, region.all_made))
        replanned.append(region)
    return replanned


def _evidence(strategy: Strategy, graphs: Sequence[JointGraph], wishes: Sequence[PolicyRule]) -> list[Evidence | None]:
    """What the min cut had before it, region by region; None for other strategies."""
    if not isinstance(strategy, MinCut):
        return [None for _ in graphs]
    rules = (*wishes, *own_rules(strategy))
    return [
        evidence(graph, strategy.heuristic, cse=strategy.cse, wishes=match_rules(graph, rules).wishes)
        if graph.has_backward
        else None
        for graph in graphs
    ]
