"""``timm:NAME``: an image model of timm with random weights, trained with cross entropy on random labels."""

from __future__ import annotations

import inspect
import re
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any

from aotcli.capture.inputs import materialize_inputs, parse_inputs
from aotcli.capture.loaders.vision_ops import import_beside_torchvision
from aotcli.capture.overrides import Overrides
from aotcli.capture.project import project_root
from aotcli.capture.workload import Definition, Workload
from aotcli.errors import EnvironmentProblem, WorkloadError
from aotcli.ir.trace import CaptureSettings

DEFAULT_BATCH = 2


def timm_workload(spec: str, settings: CaptureSettings) -> Workload:
    """The workload of a timm model. ``--set batch=8 --set size=160`` size its input; other keys go to the model."""
    name = spec.removeprefix("timm:")
    if not re.fullmatch(r"\w+(\.\w+)?", name):
        raise WorkloadError(
            f"{spec!r} names no timm model",
            why="nothing is downloaded: timm: takes a model's name",
            fix="timm:resnet50",
        )
    return Workload(name, spec, project_root(Path.cwd()), lambda: _define(spec, name, settings))


def _define(spec: str, name: str, settings: CaptureSettings) -> Definition:
    timm = _import_timm()
    if not timm.is_model(name):
        near = get_close_matches(name, timm.list_models(), n=3, cutoff=0.5)
        fix = f"did you mean {', '.join(f'timm:{each}' for each in near)}?" if near else "see timm.list_models()"
        raise WorkloadError(f"{spec}: timm {timm.__version__} has no model {name!r}", fix=fix)
    overrides = Overrides(settings.overrides)
    sizes = overrides.fields({"batch": DEFAULT_BATCH, "size": 224})
    size = sizes.get("size")
    model = _create(timm, spec, name, overrides.rest(), size)
    if settings.inputs:
        args, kwargs = materialize_inputs(parse_inputs(settings.inputs))
    else:
        args, kwargs = (_images(model, sizes.get("batch", DEFAULT_BATCH), size),), {}
    loss = None
    if settings.loss and args and model.num_classes > 0:
        loss = _cross_entropy(args[0].shape[0], model.num_classes)
    return Definition(model.train(), args, kwargs, loss, loss_in_output=False)


def _import_timm() -> Any:
    try:
        return import_beside_torchvision("timm")
    except ModuleNotFoundError as error:
        if error.name == "torchvision":
            raise EnvironmentProblem(
                "timm: needs torchvision, which is missing",
                why="timm imports it for its data transforms",
                fix="pip install --no-deps torchvision (its dependencies would replace your torch)",
            ) from error
        raise EnvironmentProblem("timm: needs timm", why=str(error), fix="pip install 'aotcli[timm]'") from error
    except ImportError as error:
        raise EnvironmentProblem("timm cannot be imported", why=str(error), fix="pip install -U timm") from error


def _create(timm: Any, spec: str, name: str, arguments: dict[str, Any], size: int | None) -> Any:
    """The model with random weights; a model that is built for one size of image is built for `size`."""
    if size is not None and "img_size" not in arguments and timm.get_pretrained_cfg(name).fixed_input_size:
        arguments = {**arguments, "img_size": size}
    try:
        return timm.create_model(name, pretrained=False, **arguments)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown.group(1) not in arguments:
            raise _build_failed(spec, error) from error
        known = list(inspect.signature(type(timm.create_model(name))).parameters)
        near = get_close_matches(unknown.group(1), ["batch", "size", *known], n=3, cutoff=0.5)
        raise WorkloadError(
            f"--set {unknown.group(1)}: {spec} has no setting {unknown.group(1)!r}",
            fix=f"did you mean {', '.join(near)}?" if near else f"it takes batch, size, {', '.join(known[:20])}",
        ) from None
    except (RuntimeError, ValueError, AssertionError) as error:
        raise _build_failed(spec, error) from error


def _build_failed(spec: str, error: BaseException) -> WorkloadError:
    return WorkloadError(
        f"{spec} raised while it was built",
        why=f"{type(error).__name__}: {error}",
        fix="other settings may do: --set NAME=VALUE; --debug shows the whole traceback",
    )


def _images(model: Any, batch: int, size: int | None) -> Any:
    import torch

    channels, height, width = model.default_cfg["input_size"]
    first_channels = next((p.shape[1] for p in model.parameters() if p.dim() == 4), channels)
    if first_channels in (1, 2, 4) and first_channels != channels:  # `--set in_chans=1`
        channels = first_channels
    return torch.randn(batch, channels, size or height, size or width)


def _cross_entropy(batch: int, classes: int) -> Any:
    """Cross entropy against random labels; a model with several heads has it for each."""
    import torch
    from torch import Tensor, nn

    class CrossEntropy(nn.Module):
        labels: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("labels", torch.randint(classes, (batch,)))

        def forward(self, output: Any) -> Tensor:
            heads = [output] if isinstance(output, Tensor) else list(output)
            return reduce(torch.add, [nn.functional.cross_entropy(head, self.labels) for head in heads])

    return CrossEntropy()
