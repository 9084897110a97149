"""What is traced: a name for a model and its inputs, and the pair once built.

`load_workload` reads a spec (``path.py``, ``path.py:NAME``, ``package.module:NAME``, ``hf:NAME``, ``timm:NAME``)
without running anything and without importing torch; `build` runs the user's code and gives the step to capture.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aotcli.capture.inputs import parse_inputs
from aotcli.capture.project import project_root
from aotcli.errors import CaptureError, WorkloadError
from aotcli.ir.trace import CaptureSettings

_MODULE_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FORMS = "path.py, path.py:NAME, package.module:NAME, hf:NAME_OR_CONFIG.json, timm:NAME"


class FakeBuildFailed(CaptureError):
    """The model cannot be built or run on fake tensors; real ones may do."""


@dataclass(frozen=True)
class Definition:
    """A workload once its code has run.

    `model` is an nn.Module or the function to trace. `loss` maps the model's output to a scalar tensor;
    `loss_in_output` says that the output carries its own as ``.loss`` (None: not known before it runs). `namespace`
    are the globals of the model file. `owned` says that the model was made for us and may be changed in place.
    """

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Callable[[Any], Any] | None = None
    dynamic_shapes: Any = None
    loss_in_output: bool | None = None
    namespace: dict[str, Any] | None = None
    owned: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """A model and its inputs, by name; nothing has run yet.

    `spec` is as given, with paths relative to `root`, the project's folder. `files` are those known without running
    the code (see `BuiltWorkload.files` for all). `define` runs the code; each call starts anew, so that one workload
    can be built on fake and on real tensors. `loaded_at` is when it was named, in seconds since the epoch. `measured`
    keeps what a build on fake tensors found out: ``state_bytes`` of parameters and buffers.
    """

    name: str
    spec: str
    root: Path
    define: Callable[[], Definition]
    files: tuple[Path, ...] = ()
    loaded_at: float = field(default_factory=time.time)
    measured: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass
class BuiltWorkload:
    """A step ready to be captured.

    `step` is an nn.Module whose attribute `model` is the user's module or function; its forward returns the loss
    where `loss_inside`, else the model's output. `input_names` names the positional arguments after the model's
    own parameters. `fake_mode` is the mode everything lives in, or None. `files` is the model file and what it
    imported outside site-packages. `constants` are tensors that the step reads besides the model's and the inputs.
    """

    step: Any
    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input_names: tuple[str, ...]
    loss_inside: bool
    train: bool
    fake_mode: Any | None
    files: tuple[Path, ...] = ()
    constants: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    eager: Any = field(default=None, repr=False)


def load_workload(spec: str, settings: CaptureSettings) -> Workload:
    """The workload that `spec` names. Raises WorkloadError where it names none; the user's code does not run yet."""
    parse_inputs(settings.inputs)
    if spec.startswith("hf:"):
        from aotcli.capture.loaders.hf import hf_workload

        return hf_workload(spec, settings)
    if spec.startswith("timm:"):
        from aotcli.capture.loaders.timm import timm_workload

        return timm_workload(spec, settings)
    path, _, name = spec.rpartition(":") if ".py:" in spec else (spec, "", "")
    if path.endswith(".py") or Path(path).is_file():
        from aotcli.capture.loaders.file import file_workload

        return file_workload(Path(path), name, settings)
    if _MODULE_SPEC.fullmatch(spec):
        from aotcli.capture.loaders.package import package_workload

        return package_workload(spec, settings)
    raise _unknown_spec(spec)


def object_workload(
    model: Any,
    inputs: Any,
    *,
    loss: Callable[[Any], Any] | None = None,
    dynamic_shapes: Any = None,
    name: str | None = None,
) -> Workload:
    """The workload of a model object (a module or a function) and its inputs, for the Python API.

    `inputs` has the forms that a model file may give: a tensor, a tuple, a dict or ``(tuple, dict)``. The model is
    never changed: capture works on a copy.
    """

    def define() -> Definition:
        from aotcli.capture.define import split_inputs

        args, kwargs = split_inputs(inputs() if callable(inputs) else inputs, "inputs")
        return Definition(model, args, kwargs, loss, dynamic_shapes, owned=False)

    title = name or getattr(model, "__name__", None) or type(model).__name__
    return Workload(title, title, project_root(Path.cwd()), define)


def build(workload: Workload, settings: CaptureSettings, *, fake: bool) -> BuiltWorkload:
    """Run the workload's code and give the step to capture, on fake or on real tensors.

    Raises WorkloadError for faults of the user's model or inputs, FakeBuildFailed where fake tensors are the cause,
    EnvironmentProblem where a library or the device is missing.
    """
    from aotcli.capture.build import build_workload

    return build_workload(workload, settings, fake=fake)


def _unknown_spec(spec: str) -> WorkloadError:
    folder = Path(spec).parent
    names = [path.as_posix() for path in sorted(folder.glob("*.py"))] if folder.is_dir() else []
    near = get_close_matches(spec, names, n=3, cutoff=0.4) or get_close_matches(f"{spec}.py", names, n=3, cutoff=0.4)
    if spec.endswith(".json"):
        return WorkloadError(f"no such record: {spec}", fix="give a file that `aotcli trace MODEL -o FILE` wrote")
    fix = f"did you mean {', '.join(near)}?" if near else "`aotcli trace model.py` reads `model` and `inputs`"
    return WorkloadError(f"{spec!r} names no model", why=f"a model is one of {_FORMS}", fix=fix)
