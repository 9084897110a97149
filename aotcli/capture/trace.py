"""Capture one training step: every region's joint graph, on fake tensors where that works, and what was traced."""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import logging
import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from aotcli.capture import torch_private, torch_private_breaks
from aotcli.capture.eager import measure_eager
from aotcli.capture.origins import Origins, path_of_source
from aotcli.capture.recorder import LiveRegion, Recorder
from aotcli.capture.seeding import generators_restored
from aotcli.capture.snapshot import PrimalFacts, SnapshotContext
from aotcli.capture.torch_decision import torch_decisions
from aotcli.capture.torch_private import pytree
from aotcli.capture.workload import BuiltWorkload, Workload, build
from aotcli.errors import AotcliError, CaptureError, WorkloadError
from aotcli.ir.joint import NodeKind
from aotcli.ir.trace import CaptureSettings, Environment, GraphBreak, ModelInfo, Trace

Progress = Callable[[str], None]

# Frames of these files say nothing about the user's model.
_OWN_FRAMES = ("/aotcli/capture/",)


@dataclass(frozen=True)
class Capture:
    """A trace together with the live graphs it was read from."""

    trace: Trace
    regions: tuple[LiveRegion, ...]


def capture(workload: Workload, settings: CaptureSettings, progress: Progress | None = None) -> Capture:
    """Capture `workload` as `settings` say.

    Tensors are fake by default: nothing is computed and no memory is taken. With `tensors="auto"` a model that cannot
    be traced fake is traced on real tensors, with a note that says why. Raises WorkloadError where the model or its
    inputs cannot be made, CaptureError where no graph can be captured.
    """
    report = progress or (lambda message: None)
    if settings.tensors == "real":
        return _capture(workload, settings, report, fake=False, notes=())
    try:
        with _no_collections():
            return _capture(workload, settings, report, fake=True, notes=())
    except CaptureError as error:
        if settings.tensors == "fake":
            raise CaptureError(
                f"{workload.name} cannot be captured on fake tensors: {error.what}",
                why=error.why,
                fix="--tensors auto falls back to real tensors; --tensors real starts with them",
            ) from error
        reason = " ".join((error.why or error.what).split())
        report("fake tensors did not work; trying real ones")
        try:
            return _capture(workload, settings, report, fake=False, notes=(f"traced on real tensors: {reason}",))
        except AotcliError as real_error:
            real_error.why = f"{real_error.why} (fake tensors did not work either: {reason})"
            raise real_error from real_error.__cause__


def _capture(
    workload: Workload, settings: CaptureSettings, progress: Progress, *, fake: bool, notes: tuple[str, ...]
) -> Capture:
    progress(f"building {workload.name} on {'fake' if fake else 'real'} tensors")
    built = build(workload, settings, fake=fake)
    recorder = Recorder(_context(workload, built, settings), _tensor_facts(built), execute=not fake, progress=progress)
    progress("capturing")
    with torch_private_breaks.skipped_frames() as skipped, generators_restored():
        output = _run(built, recorder)
    recorder.breaks += [GraphBreak(reason, recorder.place(place)) for reason, place in skipped]
    _check_output(output, workload, recorder)
    progress("measuring what eager saves")
    eager, eager_notes = _eager(built)
    if settings.with_torch:
        progress("asking PyTorch's own partitioner")
    trace = Trace(
        model=_model_info(workload, built, recorder),
        environment=_environment(settings),
        settings=settings,
        regions=tuple(region.graph for region in recorder.regions),
        loss=built.loss_inside,
        train=built.train,
        tensors="fake" if fake else "real",
        breaks=tuple(recorder.breaks),
        mutations=_mutations(recorder),
        eager=eager,
        notes=(*notes, *built.notes, *eager_notes, *(_partial(built, recorder) if skipped else ())),
        torch_decision=torch_decisions(recorder.regions) if settings.with_torch else (),
    )
    return Capture(trace, tuple(recorder.regions))


def _partial(built: BuiltWorkload, recorder: Recorder) -> tuple[str, ...]:
    """A note on the parameters that no region reads, where part of the step was not captured."""
    if not isinstance(built.model, nn.Module):
        return ()
    read = {node.origin for region in recorder.regions for node in region.graph.placeholders}
    names = [name for name, _ in built.model.named_parameters()]
    missing = [name for name in names if name not in read]
    if not missing:
        return ()
    return (f"part of the step is in no region: {len(missing)} of {len(names)} parameters are read by none",)


# Captures after which a process collects what they left behind.
_CAPTURES_PER_COLLECTION = 8
_uncollected = itertools.count(1)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """No garbage collection: a capture on fake tensors keeps most of what it makes, and its garbage is small.

    Measured: a GPT of 12 layers is captured in 0.9 of the time; 80 Llama layers of 8192 peak at 0.79 GiB, not 0.64.
    Collecting anew would begin with a pass over all that the capture made (0.04 of its time), though most commands end
    soon after. So everything goes to the oldest generation unseen, and every few captures of one process collect it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if next(_uncollected) % _CAPTURES_PER_COLLECTION == 0:
                gc.collect()
            gc.freeze()
            gc.unfreeze()  # what was frozen is now old
            gc.enable()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the compiler's warnings off the terminal, unless TORCH_LOGS asks for logs."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "TORCH_LOGS" not in os.environ:
            logging.disable(max(before, logging.WARNING))
        try:
            yield
        finally:
            logging.disable(before)


def _context(workload: Workload, built: BuiltWorkload, settings: CaptureSettings) -> SnapshotContext:
    origins = Origins(
        _module_names(built.model), workload.root, ignore=_OWN_FRAMES, default=definition_line(workload, built.model)
    )
    return SnapshotContext(
        origins,
        settings.level,
        outside="(loss)" if built.loss_inside and isinstance(built.model, nn.Module) else "",
        input_name=lambda source: _input_name(source, built.input_names),
        with_source=settings.with_source,
    )


def definition_line(workload: Workload, model: Any) -> str | None:
    """``file:line`` (absolute) of what the workload is made from: the line that ops get which no line of the user's
    code calls (a model that is an nn.Sequential, say)."""
    if workload.files:
        name = workload.spec.rpartition(":")[2] if ".py:" in workload.spec else "model"
        for line, text in enumerate(workload.files[0].read_text("utf-8", "replace").splitlines(), 1):
            if re.match(rf"(def|class)\s+{re.escape(name)}\b|{re.escape(name)}\s*[:=]", text):
                return f"{workload.files[0]}:{line}"
    function = type(model).forward if isinstance(model, nn.Module) else model
    try:
        return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):
        return None


def _run(built: BuiltWorkload, recorder: Recorder) -> Any:
    torch_private.reset_dynamo()
    try:
        with torch_private.dynamo_limits(), quiet(), built.fake_mode or contextlib.nullcontext():
            step = torch.compile(built.step, backend=recorder.backend)
            return step(*built.args, **built.kwargs)
    except AotcliError:
        raise
    except Exception as error:  # whatever the model or the compiler raises is reported as such
        raise _failure(error, recorder, fake=built.fake_mode is not None) from error
    finally:
        torch_private.reset_dynamo()


def _failure(error: BaseException, recorder: Recorder, *, fake: bool) -> CaptureError:
    """What the model or the compiler raised, as one message with the user's line."""
    inner = _innermost(error)
    place = _user_line(inner, recorder) or _user_line(error, recorder)
    text = next((line.strip() for line in str(inner).splitlines() if line.strip()), "")
    where = f" at {place}" if place else ""
    fix = "run the model in eager first; --tensors real avoids fake tensors"
    if isinstance(error, torch_private.capture_failures()):
        return CaptureError(
            f"the compiler could not capture the step{where}", why=f"{type(inner).__name__}: {text}", fix=fix
        )
    return CaptureError(f"the model failed while it was traced{where}", why=f"{type(inner).__name__}: {text}", fix=fix)


def _innermost(error: BaseException) -> BaseException:
    """The exception at the root of a chain of compiler exceptions."""
    seen = {id(error)}
    while True:
        inner = getattr(error, "inner_exception", None) or error.__cause__
        if inner is None and isinstance(error, torch_private.capture_failures()):
            inner = error.__context__  # Dynamo words the failure anew and drops the cause
        if not isinstance(inner, BaseException) or id(inner) in seen:
            return error
        seen.add(id(inner))
        error = inner


def _user_line(error: BaseException, recorder: Recorder) -> str | None:
    """``file:line`` of the innermost frame that is neither torch's nor ours."""
    frames = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    frames += [f"{f.filename}:{f.lineno}" for f in getattr(error, "real_stack", None) or ()]
    for frame in reversed(frames):
        if "/torch/" not in frame and "/aotcli/" not in frame and not frame.startswith("<"):
            return recorder.place(frame)
    return None


def _check_output(output: Any, workload: Workload, recorder: Recorder) -> None:
    leaves = pytree.tree_leaves(output)
    if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
        raise WorkloadError(
            f"{workload.name} returns no tensor",
            why=f"its output holds {kinds}: an output type that torch.utils._pytree does not open is one leaf"
            if leaves
            else "its output is empty",
            fix="return tensors in tuples, lists, dicts or dataclasses registered with torch.utils._pytree",
        )
    if not recorder.regions:
        raise CaptureError(
            f"{workload.name} was run but nothing was compiled",
            why="the step holds no tensor op that Dynamo can capture, or it is disabled for compilation",
            fix="look for torch.compiler.disable on the model; TORCH_LOGS=graph_breaks says what Dynamo skipped",
        )


# What the inputs and tensors of the step are called.


def _module_names(model: Any) -> dict[int, str]:
    if not isinstance(model, nn.Module):
        return {}
    return {id(module): name for name, module in model.named_modules()}


def _tensor_facts(built: BuiltWorkload) -> dict[int, PrimalFacts]:
    model = built.model
    if not isinstance(model, nn.Module):
        # What a function reads besides its arguments and trains is a parameter of it; where it stands names it.
        return {id(t): PrimalFacts(NodeKind.PARAM, None) for t in built.constants if t.is_leaf and t.requires_grad}
    facts = {id(t): PrimalFacts(NodeKind.BUFFER, name) for name, t in model.named_buffers()}
    facts |= {id(t): PrimalFacts(NodeKind.PARAM, name) for name, t in model.named_parameters()}
    return facts


_SIZE = re.compile(r"(.*)\.(size|stride)\(\)\[(\d+)\]")


def _input_name(source: str, names: tuple[str, ...]) -> str:
    """``L['args'][0]`` as the name of the first parameter, ``L['kwargs']['labels']`` as ``labels``."""
    size = _SIZE.fullmatch(source)
    if size is not None:
        return f"{_input_name(size[1], names)}.{size[2]}({size[3]})"
    path = path_of_source(source)
    head, _, rest = path.partition(".")
    if source.startswith("L['args']") and head.isdigit():
        first = names[int(head)] if int(head) < len(names) else f"args.{head}"
        return f"{first}.{rest}" if rest else first
    if path:
        return path
    return source.split("'")[1].lstrip("_") if "'" in source else source


# What was traced.


def _model_info(workload: Workload, built: BuiltWorkload, recorder: Recorder) -> ModelInfo:
    if isinstance(built.model, nn.Module):
        parameters, buffers = list(built.model.parameters()), list(built.model.buffers())
    else:
        given = {id(tensor) for _, tensor in _inputs(built)}
        state = [each for key, each in recorder.state.items() if key not in given]
        parameters, buffers = (
            [tensor for kind, tensor in state if kind is wanted] for wanted in (NodeKind.PARAM, NodeKind.BUFFER)
        )
    inputs = _inputs(built)
    return ModelInfo(
        name=workload.name,
        spec=workload.spec,
        parameters=sum(p.numel() for p in parameters),
        parameter_bytes=sum(p.numel() * p.dtype.itemsize for p in parameters),
        buffer_bytes=sum(b.numel() * b.dtype.itemsize for b in buffers),
        input_bytes=sum(t.numel() * t.dtype.itemsize for _, t in inputs),
        dtypes=tuple(dict.fromkeys(str(p.dtype).removeprefix("torch.") for p in parameters)),
        inputs=tuple(f"{name} {describe_tensor(t)}" for name, t in inputs),
    )


def _inputs(built: BuiltWorkload) -> list[tuple[str, torch.Tensor]]:
    names = built.input_names
    found = []
    for i, value in enumerate(built.args):
        name = names[i] if i < len(names) else f"args.{i}"
        found += [(name, leaf) for leaf in pytree.tree_leaves(value)]
    for name, value in built.kwargs.items():
        found += [(name, leaf) for leaf in pytree.tree_leaves(value)]
    return [(name, leaf) for name, leaf in found if isinstance(leaf, torch.Tensor)]


_SHORT_DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool",
}  # fmt: skip


def describe_tensor(tensor: torch.Tensor) -> str:
    """``i64[8,1024]``."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{_SHORT_DTYPES.get(dtype, dtype)}[{','.join(str(int(dim)) for dim in tensor.shape)}]"


def _environment(settings: CaptureSettings) -> Environment:
    device = torch.device(settings.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return Environment(torch=torch.__version__, device=device.type, device_name=name, cuda=torch.version.cuda)


def _mutations(recorder: Recorder) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for region in recorder.regions:
        for name in region.graph.mutated:
            node = region.graph[name]
            found[f"{node.kind.value} {node.origin or node.name}"] = None
    return tuple(found)


def _eager(built: BuiltWorkload) -> tuple[Any, tuple[str, ...]]:
    with quiet(), built.fake_mode or contextlib.nullcontext():
        return measure_eager(built)
