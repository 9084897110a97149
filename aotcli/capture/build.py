"""From a workload to a step that can be captured: run the user's code, settle mode, dtype, device and loss."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from aotcli.capture import torch_private_build
from aotcli.capture.copy_function import FunctionCopier
from aotcli.capture.define import bind_inputs
from aotcli.capture.dynamic import mark_all_dynamic, mark_dynamic_shapes
from aotcli.capture.fake import Converter, large_tensors_fake, tensors_of
from aotcli.capture.inputs import torch_dtype_name
from aotcli.capture.project import own_modules
from aotcli.capture.seeding import generators_restored, seed_generators
from aotcli.capture.step import StepModule, carries_loss
from aotcli.capture.user_error import explain_error
from aotcli.capture.workload import BuiltWorkload, Definition, FakeBuildFailed, Workload
from aotcli.errors import AotcliError, EnvironmentProblem, WorkloadError
from aotcli.ir.trace import CaptureSettings

_NEVER_FAKE_FAULTS = (ImportError, NameError, SyntaxError, AttributeError, LookupError, OSError, SystemExit)
"""What user code raises that real tensors would not mend."""


def build_workload(workload: Workload, settings: CaptureSettings, *, fake: bool) -> BuiltWorkload:
    """See `aotcli.capture.workload.build`."""
    _check_device(settings.device)
    if not fake:
        _check_memory(workload)
    fake_mode = torch_private_build.new_fake_mode() if fake else None
    with _seeded(settings.seed), _fake_faults(fake):
        with large_tensors_fake(fake_mode) if fake else nullcontext():
            definition = workload.define()
        notes = list(definition.notes)
        settled = _settle(definition, settings, fake_mode, notes)
        if fake and isinstance(settled.model, nn.Module):
            workload.measured["state_bytes"] = _state_bytes(settled.model)
        names = bind_inputs(settled.model, settled.args, settled.kwargs)
        in_output = settled.loss_in_output
        if in_output is None:
            in_output = settings.loss and carries_loss(_probe(settled, settings, fake_mode, workload.root))
    step = StepModule(
        settled.model,
        settled.loss,
        loss_in_output=in_output,
        autocast=_dtype(settings.autocast, "--autocast"),
        device_type=torch.device(settings.device).type,
    )
    if settled.dynamic_shapes is not None:
        mark_dynamic_shapes(settled.dynamic_shapes, names, settled.args, settled.kwargs)
    elif settings.dynamic:
        mark_all_dynamic(settled.args, settled.kwargs)
    return BuiltWorkload(
        step=step,
        model=settled.model,
        args=settled.args,
        kwargs=settled.kwargs,
        input_names=names,
        loss_inside=settled.loss is not None or in_output,
        train=step.training,
        fake_mode=fake_mode,
        files=_files(workload),
        constants=tensors_of(settled.namespace or {}),
        notes=tuple(notes),
    )


def _check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise WorkloadError(f"--device {device}: no such device", fix="use cpu or cuda") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem(
            "--device cuda: this torch sees no CUDA device",
            why="PyTorch cannot trace CUDA tensors without one, not even fake ones",
            fix="leave --device off to trace on the cpu; ops that differ on CUDA are named in the output",
        )


def _state_bytes(model: nn.Module) -> int:
    return sum(each.numel() * each.dtype.itemsize for each in (*model.parameters(), *model.buffers()))


def _check_memory(workload: Workload) -> None:
    """Refuse to build for real what fake tensors showed not to fit: the system would kill the process."""
    needed, free = workload.measured.get("state_bytes", 0), _free_memory()
    if free is not None and needed > free:
        raise WorkloadError(
            f"{workload.name} is too large for real tensors",
            why=f"its parameters take {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB of memory are free",
            fix="--tensors fake says why fake tensors do not work; a smaller configuration or --dtype bf16 may",
        )


def _free_memory() -> int | None:
    """Bytes of memory that a process can still take; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _dtype(name: str | None, option: str) -> torch.dtype | None:
    return None if name is None else getattr(torch, torch_dtype_name(name, option=option))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random weights and inputs from `seed`; the caller's generators are as before afterwards."""
    with generators_restored():
        seed_generators(seed)
        yield


@contextmanager
def _fake_faults(fake: bool) -> Iterator[None]:
    """Turn a failure that fake tensors may have caused into FakeBuildFailed."""
    try:
        yield
    except WorkloadError as error:
        cause = error.__cause__
        if not fake or cause is None or isinstance(cause, (*_NEVER_FAKE_FAULTS, AotcliError)):
            raise
        raise FakeBuildFailed(
            f"{error.what}, on fake tensors", why=error.why, fix="--tensors real builds the model with its data"
        ) from cause


def _settle(definition: Definition, settings: CaptureSettings, fake_mode: Any | None, notes: list[str]) -> Definition:
    """The definition with mode, dtype and device applied, on fake tensors where there is a mode for them."""
    converter = Converter(fake_mode, dtype=_dtype(settings.dtype, "--dtype"), device=settings.device)
    if definition.owned:
        for part in (definition.model, definition.loss):
            if isinstance(part, nn.Module):
                converter.module(part)
            elif part is not None:
                converter.function(part)
        if definition.namespace is not None:
            definition.namespace.update(converter.namespace(definition.namespace))
    else:
        definition = _copy(definition, converter, fake_mode, notes)
    if isinstance(definition.model, nn.Module) and settings.train is not None:
        definition.model.train(settings.train)
    return replace(definition, args=converter.tree(definition.args), kwargs=converter.tree(definition.kwargs))


def _copy(definition: Definition, converter: Converter, fake_mode: Any | None, notes: list[str]) -> Definition:
    """The definition on copies of what is not ours to change."""
    copier = FunctionCopier(converter)
    try:
        model = copier.copy(definition.model)
        loss = copier.copy(definition.loss)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        if fake_mode is not None:
            raise WorkloadError(
                "the model cannot be copied",
                why=str(error),
                fix="--tensors real traces the model itself; or name it by a file, which is built anew",
            ) from error
        notes.append(f"the model could not be copied ({error}): its own buffers are updated")
        return definition
    return replace(definition, model=model, loss=loss, namespace=copier.replaced)


def _probe(definition: Definition, settings: CaptureSettings, fake_mode: Any | None, root: Path) -> Any:
    """The model's output, to see whether it carries a loss."""
    autocast = _dtype(settings.autocast, "--autocast")
    context = nullcontext() if autocast is None else torch.autocast(torch.device(settings.device).type, dtype=autocast)
    try:
        with fake_mode if fake_mode is not None else nullcontext(), context:
            return definition.model(*definition.args, **definition.kwargs)
    except Exception as error:
        raise WorkloadError(
            "the model raised when it was called",
            why=explain_error(error, root),
            fix="call model(*inputs) in Python and mend that first; other inputs: --input 'NAME=f32[8,16]'",
        ) from error


def _files(workload: Workload) -> tuple[Path, ...]:
    """The model file and the user's own modules that are loaded now, the running script excepted."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    own = {path for path in own_modules().values() if main is None or path != Path(main).resolve()}
    return tuple(sorted(own | set(workload.files)))
