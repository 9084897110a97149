"""Validate: compile a model under each strategy, run it beside eager, and judge what came out.

Eager and compiled start from the same weights, inputs and seeds. Every strategy gets a copy of the model and all
checks; what goes wrong with one strategy is a row of its own, and the next one still runs.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from aotcli.capture import torch_private
from aotcli.capture.loaders.file import own_modules_kept
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.seeding import generators_restored
from aotcli.capture.torch_private_validate import uncached
from aotcli.capture.trace import capture, quiet
from aotcli.capture.user_error import describe_error, root_cause
from aotcli.capture.workload import BuiltWorkload, Workload, build
from aotcli.errors import AotcliError, WorkloadError
from aotcli.ir.outcome import CheckResult, Outcome, StrategyValidation, Validation
from aotcli.ir.trace import CaptureSettings
from aotcli.lowering.backend import Backend
from aotcli.strategies import Strategy, load_strategy
from aotcli.validation import (
    gradients,
    graphs,
    mutations,
    outputs,
    own_random,
    peak,
    random_state,
    saved,
    second_backward,
    self_consistency,
    step_time,
    weights,
)
from aotcli.validation.attribution import BASELINE
from aotcli.validation.evidence import Evidence
from aotcli.validation.memory import is_out_of_memory, out_of_memory
from aotcli.validation.observer import Observer
from aotcli.validation.random_state import same_draws
from aotcli.validation.reference import Reference, WholeRun, make_reference, whole_run
from aotcli.validation.subject import Original, StepRun, Subject
from aotcli.validation.unfused import Unfused

Check = Callable[[Evidence], CheckResult | list[CheckResult]]

# In this order: training goes on from the first step, and what comes after it does not look at its gradients.
_AGAINST_EAGER: tuple[tuple[str, Check], ...] = (
    (outputs.CHECK, outputs.check),
    (gradients.CHECK, gradients.check),
    (gradients.INPUT_CHECK, gradients.check_inputs),
    (mutations.CHECK, mutations.check),
    (random_state.CHECK, random_state.check),
    (weights.CHECK, weights.check),
)
_OF_ITSELF: tuple[tuple[str, Check], ...] = (
    (second_backward.CHECK, second_backward.check),
    (saved.CHECK, saved.check),
    (graphs.CHECK, graphs.check),
    (peak.CHECK, peak.check),
)
_LEVELS = {"aot_eager": "aten", "inductor": "inductor"}
FIRST_STEP = "first step"


@dataclass(frozen=True)
class Demands:
    """What is asked for besides the model: `steps` of an optimizer, times or none, a largest slowdown."""

    backend: str = "aot_eager"
    steps: int = 3
    rng: str = "eager"
    max_slowdown: float | None = None
    timing: bool = True

    @property
    def level(self) -> str:
        return _LEVELS[self.backend]


def validate(
    workload: Workload,
    settings: CaptureSettings,
    strategies: Sequence[tuple[str, Strategy]],
    demands: Demands,
    progress: Callable[[str], None],
) -> Validation:
    """Validate each of `strategies` (label and strategy).

    Raises WorkloadError where the model cannot be built or fails in eager, EnvironmentProblem where the device is
    missing or eager itself runs out of memory.
    """
    settings = replace(settings, level=demands.level)
    progress(f"building {workload.name}")
    built = _build(workload, settings)
    torch_private.reset_dynamo()
    try:
        with (
            torch_private.dynamo_limits(),
            quiet(),
            # Inductor's setting, which also keeps random ops that nobody reads: no user of aot_eager has it.
            uncached(eager_random=demands.backend == "inductor"),
            torch.enable_grad(),
            generators_restored(),
        ):
            return _validate(workload, settings, built, strategies, demands, progress)
    finally:
        torch_private.reset_dynamo()


def _build(workload: Workload, settings: CaptureSettings) -> BuiltWorkload:
    """The real model. Raises EnvironmentProblem where it does not fit."""
    try:
        return build(workload, settings, fake=False)
    except WorkloadError as error:
        if is_out_of_memory(error):
            raise out_of_memory(
                f"building {workload.name} and running it in eager", error.__cause__ or error
            ) from error
        raise


def _validate(
    workload: Workload,
    settings: CaptureSettings,
    built: BuiltWorkload,
    strategies: Sequence[tuple[str, Strategy]],
    demands: Demands,
    progress: Callable[[str], None],
) -> Validation:
    progress("running the step in eager")
    relaid = demands.backend == "inductor"
    original = Original(built)
    reference = make_reference(original, settings.seed, demands.steps, workload.root, relaid=relaid)
    progress("capturing the graph that is shown")
    shown, notes = _shown(workload, settings)
    runner = _Runner(original, settings, demands, reference, shown, progress)
    validated = tuple(runner.validate(label, strategy) for label, strategy in strategies)
    if demands.backend == "inductor" and reference.eager.step.drew:
        notes = (*notes, "compiled with fallback_random: Inductor draws eager's random numbers")
    if demands.rng == "graphsafe" and reference.eager.step.drew:
        notes = (*notes, "graph-safe states draw other numbers than eager by design: compared with itself")
    return Validation(
        model=workload.name,
        spec=workload.spec,
        torch=torch.__version__,
        device=reference.subject.device.type,
        device_name=_device_name(reference.subject.device),
        backend=demands.backend,
        level=demands.level,
        seed=settings.seed,
        steps=demands.steps,
        rng=demands.rng,
        train=built.train,
        loss=built.loss_inside,
        reference=reference.text,
        strategies=validated,
        notes=(*built.notes, *reference.notes, *notes),
    )


def _shown(workload: Workload, settings: CaptureSettings) -> tuple[tuple[LiveRegion, ...] | None, tuple[str, ...]]:
    """The regions that are shown for a model; None and why where they cannot be captured."""
    try:
        with own_modules_kept():
            captured = capture(workload, settings)
    except AotcliError as error:
        return None, (f"the graph cannot be shown: {error.what}",)
    finally:
        torch_private.reset_dynamo()
    return captured.regions, captured.trace.notes


def _device_name(device: torch.device) -> str | None:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


@dataclass
class _Runner:
    """Compiles and judges one strategy after another against one reference."""

    original: Original
    settings: CaptureSettings
    demands: Demands
    reference: Reference
    shown: tuple[LiveRegion, ...] | None
    progress: Callable[[str], None]

    def validate(self, label: str, strategy: Strategy) -> StrategyValidation:
        """All rows of one strategy."""
        self.progress(f"{label}: compiling and running the first step")
        observer = Observer(strategy, self.demands.rng)
        try:
            subject = self._compiled(observer)
            step = subject.watched_step(self.settings.seed)
        except Exception as error:  # noqa: BLE001 - what the compiler or the compiled code raises is a finding
            return StrategyValidation(label, (_failure(FIRST_STEP, "compiling and running the first step", error),))
        reference = self._fitting(step)
        evidence = Evidence(
            label=label,
            strategy=strategy,
            backend=self.demands.backend,
            rng=self.demands.rng,
            seed=self.settings.seed,
            steps=self.demands.steps,
            max_slowdown=self.demands.max_slowdown,
            reference=reference,
            subject=subject,
            step=step,
            observed=tuple(observer.regions),
            shown=self.shown,
            first_step=self.first_step,
            unfused_step=self.unfused_step,
            another=lambda: self._compiled(Observer(strategy, self.demands.rng)),
            rival=lambda: self._rival,
            baseline=lambda: self._baseline,
        )
        rows: list[CheckResult] = []
        for name, check in self._checks():
            self.progress(f"{label}: {name}")
            rows += self._checked(name, check, evidence)
        notes = tuple(dict.fromkeys(note for region in observer.regions for note in region.partition.notes))
        if reference is not self.reference:
            notes = (f"torch.compile itself draws other numbers than eager here: compared with {BASELINE}", *notes)
        gc.collect()
        return StrategyValidation(label, tuple(rows), notes)

    def _fitting(self, step: StepRun) -> Reference:
        """What draws the numbers of a compiled step: eager; where torch.compile itself draws others, the baseline."""
        eager = self.reference
        if same_draws(step, eager.eager.step) or eager.again is not None or self.demands.rng == "graphsafe":
            return eager
        try:
            baseline = self._baseline
        except Exception:  # noqa: BLE001 - then there is nothing to fit
            return eager
        return eager.replaced_by(baseline, BASELINE) if same_draws(step, baseline.step) else eager

    def _checks(self) -> tuple[tuple[str, Check], ...]:
        graphsafe = self.demands.rng == "graphsafe" and self.reference.eager.step.drew
        compared = ((self_consistency.CHECK, self_consistency.check),) if graphsafe else _AGAINST_EAGER
        own = ((own_random.CHECK, own_random.check),) if self.demands.backend == "inductor" else ()
        timed = ((step_time.CHECK, step_time.check),) if self.demands.timing else ()
        return (*compared, *_OF_ITSELF, *own, *timed)

    def _checked(self, name: str, check: Check, evidence: Evidence) -> list[CheckResult]:
        try:
            found = check(evidence)
        except Exception as error:  # noqa: BLE001 - the compiled code may raise at any step
            return [_failure(name, f"checking {name}", error)]
        return found if isinstance(found, list) else [found]

    def _compiled(self, observer: Observer) -> Subject:
        backend = Backend(self.demands.backend, observer)
        return Subject(self.original, lambda step: torch.compile(step, backend=backend))

    def first_step(self, strategy: Strategy | str, *, eager_random: bool) -> StepRun:
        """The first step of another copy: under another strategy, or with Inductor's own random numbers."""
        chosen = load_strategy(strategy) if isinstance(strategy, str) else strategy
        with uncached(eager_random=eager_random):
            return self._compiled(Observer(chosen, self.demands.rng)).watched_step(self.settings.seed)

    def unfused_step(self, strategy: Strategy | str) -> StepRun:
        """The first step of another copy, compiled by Inductor up to its partitioner and run op by op."""
        chosen = load_strategy(strategy) if isinstance(strategy, str) else strategy
        with uncached(eager_random=False):
            backend = Unfused(Observer(chosen, self.demands.rng))
            subject = Subject(self.original, lambda step: torch.compile(step, backend=backend))
            return subject.watched_step(self.settings.seed)

    @functools.cached_property
    def _rival(self) -> Subject:
        self.progress("compiling with PyTorch's own partitioner, for times")
        return self._compiled(Observer(load_strategy("torch-mincut")))

    @functools.cached_property
    def _baseline(self) -> WholeRun:
        self.progress(f"compiling with {BASELINE}, to tell the compiler's rounding from the plan's")
        subject = self._compiled(Observer(load_strategy(BASELINE)))
        return whole_run(subject, self.settings.seed, self.demands.steps)


def _failure(name: str, doing: str, error: Exception) -> CheckResult:
    """A row for a check that ended in an exception."""
    cause = root_cause(error)
    if is_out_of_memory(error):
        return CheckResult(name, Outcome.FAIL, f"out of memory while {doing}", details=(_first_line(cause),))
    if isinstance(cause, AotcliError):
        return CheckResult(
            name, Outcome.FAIL, cause.what, details=tuple(each for each in (cause.why, cause.fix) if each)
        )
    return CheckResult(name, Outcome.FAIL, f"failed while {doing}", details=(describe_error(cause),))


def _first_line(error: BaseException) -> str:
    return describe_error(error).splitlines()[0]
