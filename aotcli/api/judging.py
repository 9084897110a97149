"""One step, captured and planned, against its baseline: what `aotcli check` and the pytest plugin have in common.

    judge(CheckedModel("net", "net.py", limits=...), trace, plan, store, Keep())   # -> ModelCheck

A baseline's figures are those that were accepted, counted by the aotcli that planned then: somebody reviewed them, and
growth is measured from them. Where today's aotcli plans the baseline's own graph otherwise, a note says by how much, so
that a change of the planner is not taken for one of the model.
"""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path

from aotcli import __version__
from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.analysis.limits import (
    compare_structure,
    find_gains,
    first_difference,
    judge_figures,
    judge_ops,
    judge_structure,
    matching_nodes,
)
from aotcli.analysis.limits_contributors import (
    PlannedStep,
    op_contributors,
    peak_contributors,
    recompute_contributors,
    saved_contributors,
    saved_rows,
)
from aotcli.analysis.limits_environment import split_changes
from aotcli.analysis.summary import Plan
from aotcli.api.baselines import BaselineStore, accepted_partitions, model_label, new_baseline, plan_figures, shown
from aotcli.api.choice import choose_strategies
from aotcli.errors import AotcliError, RecordError, StrategyError
from aotcli.ir.baseline import Accepted, Baseline
from aotcli.ir.check import (
    Breach,
    CheckedModel,
    Contributor,
    Failure,
    FigureBreach,
    Figures,
    ModelCheck,
    OpBreach,
    Quantity,
    Structure,
    Verdict,
)
from aotcli.ir.difference import Difference, EnvironmentChange
from aotcli.ir.trace import Trace

_USUAL = "mincut"


@dataclass(frozen=True, slots=True)
class Keep:
    """Where a new baseline goes: beside the old one unless `write` is off (CI), and into the folder `artefacts`."""

    write: bool = True
    artefacts: Path | None = None


@dataclass(frozen=True)
class _Side:
    """A step as planned, and what the plan costs."""

    trace: Trace
    plan: Plan
    figures: Figures

    @property
    def step(self) -> PlannedStep:
        return PlannedStep(self.trace.regions, self.plan.partitions)

    @property
    def named(self) -> DiffSide:
        return DiffSide(self.trace, self.plan)


def judge(model: CheckedModel, trace: Trace, plan: Plan, store: BaselineStore, keep: Keep | None = None) -> ModelCheck:
    """One captured step and its plan against the baseline of `model`; writes a new baseline where it differs.

    A baseline that cannot be used is a `failure` of the result. Raises OutputError where a new one cannot be written.
    """
    keep = keep or Keep()
    new = new_baseline(trace, plan, name=model.name, model=model.spec, test=model.test)
    now = _Side(trace, plan, plan_figures(plan.partitions))
    result = ModelCheck(
        model,
        shown(store.path(model.name)),
        now=now.figures,
        torch=trace.environment.torch.partition("+")[0],
        device=trace.environment.device,
        level=trace.settings.level,
    )
    baseline: Baseline | None = None
    try:
        baseline = store.read(model.name)
        if baseline is not None:
            _refuse_other_model(model, baseline, trace, result.baseline)
            result = _compared(result, baseline, _accepted_side(model, baseline), now)
        else:
            result = _judged_alone(result, now)
    except AotcliError as error:
        result = dataclasses.replace(result, failure=Failure(error.what, error.why, error.fix, error.exit_code))
    written = _keep(new, baseline, store, keep)
    return _with_commands(dataclasses.replace(result, written=written), baseline, plan.label, keep)


def _accepted_side(model: CheckedModel, baseline: Baseline) -> _Side:
    """The baseline as it was accepted; a plain record as the strategy plans it now.

    Raises RecordError for a damaged plan, StrategyError where a record cannot be planned.
    """
    accepted = baseline.accepted
    if accepted is not None:
        partitions = accepted_partitions(baseline)
        plan = Plan(accepted.strategy.partition(":")[0], {}, partitions, accepted.strategy)
        return _Side(baseline.trace, plan, accepted.figures)
    chosen = choose_strategies(model.strategy)[0]
    if chosen.strategy.needs_live:
        raise StrategyError(
            f"the baseline of {model.name} is a plain record, and {chosen.label} cannot plan one",
            why="a baseline holds the plan that was accepted, a record does not",
            fix=f'accept what check found now: aotcli accept {model.name} --reason "..."',
        )
    partitions = tuple(chosen.strategy.plan(graph) for graph in baseline.trace.regions)
    plan = Plan(chosen.strategy.name, chosen.strategy.options, partitions, chosen.label)
    return _Side(baseline.trace, plan, plan_figures(partitions))


def _refuse_other_model(model: CheckedModel, baseline: Baseline, trace: Trace, path: str) -> None:
    """Raises RecordError where the baseline was made from another model; one that only moved has the same graph."""
    accepted, own = baseline.accepted, model_label(model.spec, trace)
    if accepted is None or accepted.model == own:
        return
    if compare_structure(baseline.trace.regions, trace.regions) is not Structure.EXACT:
        raise RecordError(
            f"{path} is the baseline of another model",
            why=f"it was made from {accepted.model}, and {model.name} is {own}",
            fix=f'if that is meant: aotcli accept {model.name} --reason "another model"',
        )


def _judged_alone(result: ModelCheck, now: _Side) -> ModelCheck:
    """Without a baseline, what needs none is demanded."""
    limits = result.model.limits
    found = (*judge_figures(limits, None, now.figures), *judge_ops(limits, now.trace.regions, None))
    breaches = tuple(_explained(breach, None, now, None) for breach in found)
    return dataclasses.replace(result, breaches=breaches)


def _compared(result: ModelCheck, baseline: Baseline, before: _Side, now: _Side) -> ModelCheck:
    limits = result.model.limits
    environment, others = split_changes(before.trace, now.trace)
    structure = compare_structure(before.trace.regions, now.trace.regions)
    first = "" if structure is Structure.EXACT else first_difference(before.trace.regions, now.trace.regions)
    by_structure = judge_structure(limits, structure, first)
    notes = _notes(result, baseline, now)
    if by_structure and environment and not limits.strict_env:
        notes += (f"the graph differs, which another environment may do: not enforced ({first})",)
        by_structure = ()
    found = (
        *judge_figures(limits, before.figures, now.figures),
        *judge_ops(limits, now.trace.regions, before.trace.regions),
        *by_structure,
    )
    gains = find_gains(limits, before.figures, now.figures)
    difference = diff_plans(before.named, now.named) if found or gains else None
    return dataclasses.replace(
        result,
        before=before.figures,
        breaches=tuple(_explained(breach, before, now, difference) for breach in found),
        gains=gains,
        environment=environment,
        settings=(*others, *_plan_changes(baseline, before, now)),
        structure=structure,
        difference=difference,
        replanned=_replanned(baseline, now.figures),
        reason=baseline.accepted.reason if baseline.accepted is not None else "",
        notes=notes,
    )


def _plan_changes(baseline: Baseline, before: _Side, now: _Side) -> tuple[EnvironmentChange, ...]:
    """What planned the baseline otherwise."""
    changes: list[EnvironmentChange] = []
    if before.plan.label != now.plan.label:
        changes.append(EnvironmentChange("strategy", before.plan.label, now.plan.label))
    if baseline.accepted is not None and baseline.accepted.aotcli != __version__:
        changes.append(EnvironmentChange("aotcli", baseline.accepted.aotcli, __version__))
    return tuple(changes)


def _notes(result: ModelCheck, baseline: Baseline, now: _Side) -> tuple[str, ...]:
    notes = [baseline.note]
    accepted = baseline.accepted
    if accepted is None:
        notes.append(f"{result.baseline} is a plain record: it was planned just now, with {now.plan.label}")
    elif accepted.model != model_label(result.model.spec, now.trace):
        notes.append(f"the baseline was made from {accepted.model}; the graph is the same")
    return tuple(note for note in notes if note)


def _replanned(baseline: Baseline, now: Figures) -> Figures | None:
    """What this aotcli makes of the baseline's own graph, where that is not what was accepted."""
    accepted = baseline.accepted
    if accepted is None or (accepted.figures == now and accepted.aotcli == __version__):
        return None
    try:
        strategy = choose_strategies(accepted.strategy)[0].strategy
        if strategy.needs_live:
            return None
        figures = plan_figures(strategy.plan(graph) for graph in baseline.trace.regions)
    except AotcliError:  # a strategy that is gone, or a plan file for another graph: there is nothing to compare with
        return None
    return None if figures == accepted.figures else figures


def _explained(breach: Breach, before: _Side | None, now: _Side, difference: Difference | None) -> Breach:
    """`breach` with its contributors."""
    if isinstance(breach, FigureBreach):
        against = before if breach.grew else None
        rows = _figure_contributors(breach.quantity, against, now, difference if breach.grew else None)
        return dataclasses.replace(breach, contributors=rows)
    if isinstance(breach, OpBreach):
        found = [each for each in matching_nodes(breach.pattern, now.trace.regions) if each[1].target == breach.op]
        return dataclasses.replace(breach, contributors=op_contributors(found))
    return breach


def _figure_contributors(
    quantity: Quantity, before: _Side | None, now: _Side, difference: Difference | None
) -> tuple[Contributor, ...]:
    there = None if before is None else before.step
    if quantity is Quantity.PEAK:
        return peak_contributors(there, now.step)
    if quantity is Quantity.RECOMPUTE:
        return recompute_contributors(there, now.step)
    return saved_rows(now.step) if difference is None else saved_contributors(difference)


def _keep(new: Baseline, old: Baseline | None, store: BaselineStore, keep: Keep) -> str | None:
    """Write the new baseline where it says something new, and give its path; else remove one that said so before."""
    assert new.accepted is not None
    name = new.accepted.name
    if old is not None and _says_the_same(old, new):
        if keep.write:
            store.drop_new(name)
        return None
    written: Path | None = None
    if keep.artefacts is not None:
        written = store.write_new(name, new, keep.artefacts)
    if keep.write:
        written = store.write_new(name, new)
    return None if written is None else shown(written)


def _says_the_same(old: Baseline, new: Baseline) -> bool:
    """Whether nothing but the reason, the version of aotcli, and names and lines in the graph differ."""
    if old.accepted is None or new.accepted is None or _essence(old.accepted) != _essence(new.accepted):
        return False
    if any(split_changes(old.trace, new.trace)):
        return False
    return compare_structure(old.trace.regions, new.trace.regions) is Structure.EXACT


def _essence(accepted: Accepted) -> Accepted:
    return dataclasses.replace(accepted, reason="", aotcli="")


def _with_commands(result: ModelCheck, baseline: Baseline | None, strategy: str, keep: Keep) -> ModelCheck:
    """What to type next: to accept the new baseline, and to look at what changed."""
    model, written = result.model, result.written
    if written is None and result.verdict is Verdict.OK:
        return result
    reason = "" if result.before is None and result.failure is None else ' --reason "why"'
    accept = f"aotcli accept {model.name}{reason}"
    if not keep.write:  # in CI nothing waits in the working tree, so that it has to be checked there first
        again = f"pytest {shlex.quote(model.test)}" if model.test else f"aotcli check {model.name}"
        accept = f"{again}; {accept}"
    other = written if written is not None else model.words
    option = "" if _needs_live(strategy) and written is not None else _option(strategy)
    look = f"aotcli partition {shlex.quote(other)}{option}" if other else ""
    if result.before is not None and other:
        old = strategy if baseline is None or baseline.accepted is None else baseline.accepted.strategy
        look = f"aotcli diff {_planned_by(result.baseline, old)} {_planned_by(other, strategy)}"
    return dataclasses.replace(result, accept_command=accept, look_command=look)


def _option(strategy: str) -> str:
    return "" if strategy == _USUAL else f" --strategy {shlex.quote(strategy)}"


def _planned_by(target: str, strategy: str) -> str:
    """A target of `aotcli diff`, with the strategy that plans it where that is another and can plan a record."""
    return shlex.quote(target if strategy == _USUAL or _needs_live(strategy) else f"{target}@{strategy}")


def _needs_live(strategy: str) -> bool:
    try:
        return choose_strategies(strategy)[0].strategy.needs_live
    except AotcliError:  # one that is gone
        return True
