"""The use cases: what the command line, a notebook or a test asks for. Imports torch only where a model is captured.

    trace = aotcli.trace(model, (x, y), loss=lambda out: out.mean())
    print(aotcli.partition(trace, strategy="mincut"))
    aotcli.save(trace, "net.aot.json")

`trace`, `partition`, `diff`, `save` and `load` are what `import aotcli` offers; the rest serves the command line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotcli.analysis.summary import Alternative, Plan, summarize_plan_recomputed
from aotcli.api.checking import accept, check
from aotcli.api.choice import ChosenStrategy, choose_strategies, parse_strategy, usage_lines
from aotcli.api.diff import DiffResult, diff
from aotcli.api.draw import DrawResult, draw
from aotcli.api.draw_partition import drawing
from aotcli.api.explain import ExplanationResult, explain
from aotcli.api.lint import LintResult, lint
from aotcli.api.quiet import quiet_logs
from aotcli.api.reporting import ReportResult, report
from aotcli.api.result import PartitionResult
from aotcli.api.validation import ValidationResult, validate
from aotcli.errors import InputError, StrategyError
from aotcli.ir.trace import CaptureSettings, Trace

if TYPE_CHECKING:
    from aotcli.capture.trace import Capture
    from aotcli.capture.workload import Workload
    from aotcli.ir.environment import Doctor
    from aotcli.render.code import GraphCode
    from aotcli.strategies import Strategy, StrategyInfo

__all__ = [
    "GRAPHS",
    "ChosenStrategy",
    "DiffResult",
    "DrawResult",
    "ExplanationResult",
    "FoundTrace",
    "LintResult",
    "PartitionResult",
    "ReportResult",
    "ValidationResult",
    "accept",
    "capture",
    "cheaper_alternative",
    "check",
    "choose_strategies",
    "compile",
    "diff",
    "doctor",
    "draw",
    "drawing",
    "explain",
    "find_trace",
    "graph_code",
    "lint",
    "load",
    "needs_model",
    "parse_strategy",
    "partition",
    "report",
    "save",
    "strategies",
    "trace",
    "trace_script",
    "validate",
]

Progress = Callable[[str], None]
GRAPHS = ("joint", "forward", "backward")

# Plans to offer as cheaper ones, as the command line writes them.
_ALTERNATIVES = (("mincut", {}), ("mincut", {"aggressive": "true"}), ("recompute-all", {}))
_MOST_NODES_FOR_BUDGET = 6000  # the front of larger graphs takes longer than the plan that was asked for
_WORTH_NAMING = 0.99  # an alternative must save less than this share of the plan's bytes


def trace(
    model: Any,
    inputs: Any = None,
    *,
    loss: Callable[[Any], Any] | None = None,
    dynamic_shapes: Any = None,
    name: str | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    settings: CaptureSettings | None = None,
    **options: Any,
) -> Trace:
    """Capture one training step.

    `model` is a module or a function, with `inputs` a tensor, a tuple, a dict or ``(tuple, dict)``; or a name as the
    command line takes it (``model.py``, ``hf:NAME``), without `inputs`. `loss` maps the output to a scalar and is
    then part of the step. `options` are fields of `CaptureSettings`: level, device, dtype, train, ...

    Raises WorkloadError or CaptureError where the model cannot be captured, EnvironmentProblem without a fit torch.
    """
    settings = settings_with(settings, options)
    if _is_name(model, inputs) and loss is None:
        return find_trace(str(model), settings, cache=cache, progress=progress).trace
    workload = workload_of(model, inputs, settings, loss=loss, dynamic_shapes=dynamic_shapes, name=name)
    return capture(workload, settings, progress).trace


def partition(
    model: Any,
    inputs: Any = None,
    *,
    strategy: str | Strategy | Sequence[str | Strategy] = "mincut",
    options: Mapping[str, object] | None = None,
    alternatives: bool = True,
    cache: bool = True,
    progress: Progress | None = None,
    settings: CaptureSettings | None = None,
    target: str = "MODEL",
    **trace_options: Any,
) -> PartitionResult:
    """Plan what one training step saves.

    `model` is a `Trace`, or what `trace` takes. `strategy` is a name, ``name:option=value,...``, a `Strategy`, or
    several of them to compare; `options` go to every strategy that has them. With `alternatives`, one plan that saves
    less is looked for. `target` is how commands in the text name the model.

    Raises what `trace` raises, and StrategyError for an unknown strategy or option, or one that needs the live model.
    """
    chosen = choose_strategies(strategy, options)
    live_needed = next((each for each in chosen if each.strategy.needs_live), None)
    if isinstance(model, Trace):
        if live_needed is not None:
            raise _needs_model(live_needed, model)
        found = FoundTrace(model)
    elif live_needed is not None or not _is_name(model, inputs):
        extra = {key: trace_options.pop(key) for key in ("loss", "dynamic_shapes", "name") if key in trace_options}
        settings = settings_with(settings, trace_options)
        captured = capture(workload_of(model, inputs, settings, **extra), settings, progress)
        found = FoundTrace(captured.trace, live=captured.regions)
    else:
        found = find_trace(str(model), settings_with(settings, trace_options), cache=cache, progress=progress)
    plans = tuple(_plan(found.trace, each, found.live) for each in chosen)
    alternative = cheaper_alternative(found.trace, plans[0]) if alternatives and len(plans) == 1 else None
    return PartitionResult(found.trace, plans, alternative, target=target, cached=found.cached)


def trace_script(
    command: Sequence[str], *, settings: CaptureSettings | None = None, progress: Progress | None = None
) -> Trace:
    """Run the user's own script (``python train.py ARGS``) and record the first step of each compiled region.

    Raises WorkloadError where the command is no Python script, CaptureError where it compiles nothing.
    """
    from aotcli.capture.environment import require_torch

    require_torch()
    from aotcli.capture.script import capture_script

    return _owned(capture_script(tuple(command), settings or CaptureSettings(), progress))


def save(what: Trace | PartitionResult, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a trace as a record, or a result as a plan file. A name that ends in ``.gz`` is compressed.

    Raises OutputError where `path` holds somebody else's file (unless `force`) or cannot be written.
    """
    from aotcli.ir import serial

    if isinstance(what, Trace):
        serial.write_trace(what, path, force=force)
    elif len(what.plans) > 1:
        names = ", ".join(plan.label for plan in what.plans)
        raise InputError("a plan file holds one plan", why=f"there are several: {names}", fix="name one strategy")
    else:
        serial.write_plan(what.trace, what.plan.partitions, path, force=force)


def load(path: str | PathLike[str]) -> Trace:
    """Read a record; ``-`` is standard input. Raises RecordError where it is none, damaged, or too new."""
    from aotcli.ir import serial

    return serial.read_trace(path)


def compile(model: Any, *, strategy: str = "mincut", backend: str = "aot_eager", **options: Any) -> Any:  # noqa: A001
    """`torch.compile` with the partition of `strategy`: what `validate` runs and what a training script may use.

    `backend` is "aot_eager" (plans at level aten) or "inductor". `options` are the strategy's, and of `torch.compile`:
    dynamic, fullgraph, disable. Raises StrategyError for an unknown strategy, option or backend.
    """
    from aotcli.capture.environment import require_torch

    require_torch()
    from aotcli.lowering.backend import compile_model

    return compile_model(model, strategy=strategy, backend=backend, **options)


def strategies() -> tuple[StrategyInfo, ...]:
    """Every strategy with its options."""
    from aotcli.strategies import describe_strategies

    return describe_strategies()


def doctor() -> Doctor:
    """What is installed, which devices there are, and how to get what is missing."""
    from aotcli.capture.environment import examine

    return examine()


# Below: parts of the use cases that the command line also calls.


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A trace; the live regions where it was captured just now for a strategy that needs them; whether it is one of
    an earlier run."""

    trace: Trace
    live: Sequence[Any] = ()
    cached: bool = False


def find_trace(
    spec: str, settings: CaptureSettings, *, cache: bool = True, progress: Progress | None = None
) -> FoundTrace:
    """The trace of a named workload: that of an earlier run, where nothing it depends on has changed, else a new one.

    Raises what `trace` raises.
    """
    workload = workload_of(spec, None, settings)
    if not cache:
        return FoundTrace(capture(workload, settings, progress).trace)
    from aotcli.capture.cache import find_capture, store_capture

    known = find_capture(workload, settings)
    if known is not None:
        return FoundTrace(known, cached=True)
    captured = capture(workload, settings, progress)
    store_capture(workload, settings, captured.trace)
    return FoundTrace(captured.trace)


def capture(workload: Workload, settings: CaptureSettings, progress: Progress | None = None) -> Capture:
    """Capture a workload, every node with an owner where one can be told. Raises EnvironmentProblem without torch."""
    from aotcli.capture.environment import require_torch

    if progress is not None:
        progress("importing torch")
    require_torch()
    from aotcli.capture import trace as tracing

    with quiet_logs():
        captured = tracing.capture(workload, settings, progress)
    return dataclasses.replace(captured, trace=_owned(captured.trace))


def _owned(found: Trace) -> Trace:
    """The trace with owners for the nodes that tracing left without."""
    from aotcli.analysis.owners import with_owners

    return dataclasses.replace(found, regions=tuple(with_owners(graph) for graph in found.regions))


def cheaper_alternative(found: Trace, plan: Plan) -> Alternative | None:
    """One plan that saves less than `plan` at the least cost: without matmuls if there is one, fewest FLOPs first."""
    if not plan.saved_bytes:
        return None
    candidates: list[Alternative] = []
    for name, options in (*_light_budget(found), *_ALTERNATIVES):
        if name == plan.strategy and not options:
            continue
        other = _plan(found, choose_strategies(name, options)[0], ())
        if other.saved_bytes < _WORTH_NAMING * plan.saved_bytes:
            words = " ".join(["--strategy", name, *(_option_words(key, value) for key, value in options.items())])
            recomputed = summarize_plan_recomputed(found, other)
            candidates.append(Alternative(words, other.saved_bytes, other.recompute_flops, recomputed))
    return min(candidates, key=lambda each: (each.recompute_flops, each.saved_bytes), default=None)


def _light_budget(found: Trace) -> tuple[tuple[str, dict[str, str]], ...]:
    """The budget at which `budget` recomputes as much as it can without matmuls, for a step of one region."""
    graphs = [graph for graph in found.regions if graph.has_backward]
    if len(graphs) != 1 or len(graphs[0].nodes) > _MOST_NODES_FOR_BUDGET:
        return ()
    from aotcli.analysis.budgeting import least_without_heavy_ops
    from aotcli.ir.sizes import enough_text
    from aotcli.strategies.budget import Budget

    least = least_without_heavy_ops(Budget().pose(graphs[0]))
    return () if least is None else (("budget", {"budget": enough_text(least.nbytes)}),)


def _option_words(key: str, value: str) -> str:
    return f"--{key}" if value == "true" else f"--{key} {value}"


def graph_code(
    model: Any, graph: str, *, strategy: str = "mincut", options: Mapping[str, object] | None = None, **capturing: Any
) -> list[GraphCode]:
    """The joint graph of each region as code, or its forward or backward as `strategy` would cut it.

    `model` and `capturing` are what `partition` takes. Raises InputError for an unknown `graph`, and what `partition`
    raises.
    """
    from aotcli.render.code import half_code, joint_code

    if graph not in GRAPHS:
        raise InputError(f"there is no graph {graph!r}", fix=f"choose {', '.join(GRAPHS)}")
    if graph == "joint":
        found = model if isinstance(model, Trace) else trace(model, **capturing)
        return [joint_code(region) for region in found.regions]
    result = partition(model, strategy=strategy, options=options, alternatives=False, **capturing)
    pairs = zip(result.trace.regions, result.plan.partitions, strict=True)
    return [half_code(region, plan, graph) for region, plan in pairs]


def needs_model(strategy: str) -> bool:
    """Whether a strategy cannot plan a record. Raises StrategyError for an unknown one."""
    return choose_strategies(strategy)[0].strategy.needs_live


def _plan(found: Trace, chosen: ChosenStrategy, live: Sequence[Any]) -> Plan:
    strategy = chosen.strategy
    partitions = tuple(
        strategy.plan(graph, live[position] if live else None) for position, graph in enumerate(found.regions)
    )
    return Plan(strategy.name, strategy.options, partitions, chosen.label, usage_lines(chosen, found.settings.level))


def _needs_model(chosen: ChosenStrategy, found: Trace) -> StrategyError:
    return StrategyError(
        f"{chosen.label} cannot plan a record",
        why="it is PyTorch's own function and needs the captured graph itself",
        fix=f"aotcli partition {found.model.spec} --strategy {chosen.label}",
    )


def settings_with(settings: CaptureSettings | None, options: Mapping[str, Any]) -> CaptureSettings:
    """`settings` with single fields replaced. Raises InputError for a field that there is not."""
    from difflib import get_close_matches

    known = [each.name for each in dataclasses.fields(CaptureSettings)]
    for key in options:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            raise InputError(
                f"there is no capture setting {key!r}",
                why=f"there are {', '.join(known)}",
                fix=f"did you mean {near[0]!r}?" if near else "",
            )
    return dataclasses.replace(settings or CaptureSettings(), **options)


def _is_name(model: Any, inputs: Any) -> bool:
    if not isinstance(model, str | Path):
        return False
    if inputs is not None:
        raise InputError(
            f"{str(model)!r} names a model, so its inputs come from there",
            fix="leave `inputs` out (use settings: inputs=('i64[2,128]<50257',)), or give a model object",
        )
    return True


def workload_of(model: Any, inputs: Any, settings: CaptureSettings, **extra: Any) -> Workload:
    """The workload of a name, or of a model and its inputs. Raises InputError where it is neither."""
    from aotcli.capture.workload import load_workload, object_workload

    if _is_name(model, inputs):
        return load_workload(str(model), settings)
    if not callable(model):
        raise InputError(
            f"a {type(model).__name__} is no model",
            fix="give a torch.nn.Module, a function, or a name such as model.py",
        )
    if inputs is None:
        raise InputError("inputs are missing", fix="give sample inputs: aotcli.trace(model, (x, y))")
    return object_workload(model, inputs, **extra)
