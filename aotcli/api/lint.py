"""What ``aotcli lint`` does: look for what could be had for less, in a step and its plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aotcli.analysis.lint import PlannedRegion, Subject, choose_rules, find_all, merge_rules, rule_infos
from aotcli.api.choice import choose_strategies
from aotcli.errors import InputError, PlanImpossibleError
from aotcli.ir.finding import Finding, LintReport, PolicyPlan, RuleInfo
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Partition
from aotcli.ir.policy import PolicyRule, policy_text
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.page import Page
from aotcli.render.units import bytes_text

if TYPE_CHECKING:
    from aotcli.render.github import Locate
    from aotcli.strategies import Strategy

DEFAULT_MIN_BYTES = 1 << 20
IMPOSSIBLE = "AOT001"
GRAPH_BREAK = "AOT007"

__all__ = ["DEFAULT_MIN_BYTES", "LintResult", "lint", "rule_infos"]


@dataclass(frozen=True, repr=False)
class LintResult:
    """What was found, and the ways to show it. Printing it shows what the command line shows."""

    trace: Trace
    report: LintReport
    target: str = field(default="MODEL", kw_only=True)
    cached: bool = field(default=False, kw_only=True)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    @property
    def exit_code(self) -> int:
        """1 with findings, else 0."""
        return self.report.exit_code

    def text(self, page: Page | None = None, *, every: bool = False, quiet: bool = False) -> str:
        """Findings by rule, the verdict first; `every` row, where there are many."""
        from aotcli.render.lint_text import LintView, render_lint_text

        view = LintView(self.target, every, quiet, self.cached)
        return render_lint_text(self.trace, self.report, page or Page(), view)

    def markdown(self) -> str:
        """The same as GitHub-flavoured Markdown."""
        from aotcli.render.lint_markdown import render_lint_markdown

        return render_lint_markdown(self.trace, self.report)

    def json(self) -> str:
        """The same as JSON of schema "aotcli.lint"."""
        from aotcli.render.lint_json import render_lint_json

        return render_lint_json(self.trace, self.report)

    def github(self, locate: Locate, page: Page | None = None) -> str:
        """The text, and annotations for GitHub Actions on the lines of the model."""
        from aotcli.render.lint_github import render_lint_github

        return render_lint_github(self.report, self.text(page), locate)

    def policy(self) -> str:
        """A policy file under which the findings are gone that a plan can do away with.

        Raises InputError where there are none.
        """
        plan = self.report.policy
        if plan is None:
            raise InputError(
                "there is nothing to put into a policy",
                why="no finding is about a value that could as well be computed again in the backward",
                fix="ask `report.policy` first",
            )
        return policy_text(plan.rules, [f"what lint found in {self.report.model}, computed again in the backward"])

    def __repr__(self) -> str:
        return self.text()


def lint(
    model: Any,
    inputs: Any = None,
    *,
    strategy: str | Strategy = "mincut",
    options: Mapping[str, object] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    min_bytes: int = DEFAULT_MIN_BYTES,
    cache: bool = True,
    progress: Callable[[str], None] | None = None,
    settings: CaptureSettings | None = None,
    target: str = "MODEL",
    **trace_options: Any,
) -> LintResult:
    """Look for what could be had for less in one training step, planned by one strategy.

    `model`, `inputs` and `trace_options` are what `aotcli.partition` takes. `select` and `ignore` hold rule codes or
    their beginnings (``AOT00``); findings with fewer than `min_bytes` at stake are counted and not shown. `target` is
    how commands in the text name the model.

    Raises InputError for an unknown rule and what `partition` raises; annotations that allow no plan are findings.
    """
    from aotcli import api

    rules = choose_rules(select, ignore)
    label = choose_strategies(strategy, options)[0].label
    try:
        planned = api.partition(
            model,
            inputs,
            strategy=strategy,
            options=options,
            alternatives=False,
            cache=cache,
            progress=progress,
            settings=settings,
            **trace_options,
        )
        trace, cached = planned.trace, planned.cached
        regions = _paired(trace, planned.plan.partitions)
        notes: tuple[str, ...] = ()
    except PlanImpossibleError:
        if isinstance(model, Trace):
            trace = model
        else:
            trace = api.trace(model, inputs, cache=cache, progress=progress, settings=settings, **trace_options)
        cached, regions = False, _plan_the_possible(trace, strategy, options)
        subject = Subject(trace, regions)
        if not any(finding.rule == IMPOSSIBLE for finding in find_all(subject)):
            raise  # not for its annotations: a strategy has demands of its own
        notes = ("where a part of the step has no plan, only its annotations were looked at",)
    report = _report(Subject(trace, regions), rules, label, min_bytes, notes)
    return LintResult(trace, report, target=target, cached=cached)


def _paired(trace: Trace, partitions: Sequence[Partition]) -> tuple[PlannedRegion, ...]:
    return tuple(PlannedRegion(graph, plan) for graph, plan in zip(trace.regions, partitions, strict=True))


def _plan_the_possible(
    trace: Trace, strategy: str | Strategy, options: Mapping[str, object] | None
) -> tuple[PlannedRegion, ...]:
    """Plans of the regions that have one."""
    chosen = choose_strategies(strategy, options)[0].strategy
    return tuple(
        PlannedRegion(graph, None if chosen.needs_live else _try_plan(chosen, graph)) for graph in trace.regions
    )


def _try_plan(strategy: Strategy, graph: JointGraph) -> Partition | None:
    try:
        return strategy.plan(graph)
    except PlanImpossibleError:
        return None


def _report(
    subject: Subject, rules: tuple[RuleInfo, ...], strategy: str, min_bytes: int, notes: tuple[str, ...]
) -> LintReport:
    chosen = {rule.code for rule in rules}
    found = [finding for finding in find_all(subject) if finding.rule in chosen]
    # Annotations that contradict each other, and graph breaks, are not a matter of bytes.
    shown = [each for each in found if each.nbytes >= min_bytes or not each.nbytes or each.places]
    plans = [region.partition for region in subject.regions if region.partition is not None]
    before = sum(plan.saved_bytes for plan in plans)
    shown, policy = _with_policy(subject, shown, before) if len(plans) == len(subject.regions) else (shown, None)
    return LintReport(
        model=subject.trace.model.name,
        strategy=strategy,
        rules=rules,
        findings=tuple(shown),
        saved_bytes=before if plans or not subject.regions else None,
        min_bytes=min_bytes,
        small=len(found) - len(shown),
        small_bytes=sum(finding.nbytes for finding in found) - sum(finding.nbytes for finding in shown),
        policy=policy,
        notes=(*notes, *_crossing_note(subject, shown)),
    )


def _crossing_note(subject: Subject, findings: Sequence[Finding]) -> tuple[str, ...]:
    """What graph breaks cost, as far as a trace tells: which of them a tensor crosses is not known."""
    kept = [region.partition.saved for region in subject.regions[1:] if region.partition is not None]
    nbytes = sum(value.nbytes for saved in kept for value in saved if value.category is Category.INPUT)
    if not nbytes or not any(finding.rule == GRAPH_BREAK for finding in findings):
        return ()
    return (f"{bytes_text(nbytes)} that later regions are handed are kept for the backward, and cannot be recomputed",)


def _with_policy(
    subject: Subject, findings: list[Finding], saved_bytes: int
) -> tuple[list[Finding], PolicyPlan | None]:
    """The findings, those without policy rules that such rules do not help; and the plan under all rules together.

    Rules name modules, ops and lines, so they may catch more than they are for: the plan is made, and looked at.
    """
    rules = merge_rules(rule for finding in findings for rule in finding.rules)
    plans = _policy_plans(subject, rules)
    if not plans or sum(plan.saved_bytes for plan in plans) >= saved_bytes:
        return [dataclasses.replace(finding, rules=()) for finding in findings], None
    saved = {
        (region.graph.name, value.name)
        for region, plan in zip(subject.regions, plans, strict=True)
        for value in plan.saved
    }
    kept = [
        dataclasses.replace(finding, rules=())
        if saved & {(finding.region, name) for name in finding.values}
        else finding
        for finding in findings
    ]
    flops = sum(plan.recompute_flops for plan in plans)
    return kept, PolicyPlan(rules, sum(plan.saved_bytes for plan in plans), flops)


def _policy_plans(subject: Subject, rules: tuple[PolicyRule, ...]) -> list[Partition]:
    from aotcli.analysis.assemble import assemble
    from aotcli.strategies.policy import Policy

    if not rules:
        return []
    policy = Policy()
    try:
        graphs = [region.graph for region in subject.regions]
        return [assemble(graph, policy.decide(graph, rules), strategy=policy.name) for graph in graphs]
    except PlanImpossibleError:
        return []
