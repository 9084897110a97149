"""What ``aotcli validate`` does: run a model's step as compiled under a strategy, and compare it with eager."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aotcli.api.choice import choose_strategies
from aotcli.errors import InputError
from aotcli.ir.outcome import Validation
from aotcli.ir.trace import CaptureSettings
from aotcli.render.page import Page

if TYPE_CHECKING:
    from aotcli.strategies import Strategy

BACKENDS = ("aot_eager", "inductor")
RNGS = ("eager", "graphsafe")


@dataclass(frozen=True, repr=False)
class ValidationResult:
    """What a validation found, and the ways to show it. Printing it shows what the command line shows."""

    validation: Validation

    @property
    def exit_code(self) -> int:
        """0 where all that was demanded was kept, 1 with a FAIL, 3 where nothing could be checked."""
        return self.validation.exit_code

    def text(self, page: Page | None = None) -> str:
        """Rows by strategy, the verdict first."""
        from aotcli.render.validation_text import render_validation_text

        return render_validation_text(self.validation, page or Page())

    def markdown(self) -> str:
        """The same as GitHub-flavoured Markdown."""
        from aotcli.render.validation_markdown import render_validation_markdown

        return render_validation_markdown(self.validation)

    def json(self) -> str:
        """The same as JSON of schema "aotcli.validation"."""
        from aotcli.render.validation_json import render_validation_json

        return render_validation_json(self.validation)

    def __repr__(self) -> str:
        return self.text()


def validate(
    model: Any,
    inputs: Any = None,
    *,
    strategy: str | Strategy | Sequence[str | Strategy] = "mincut",
    options: Mapping[str, object] | None = None,
    backend: str = "aot_eager",
    steps: int = 3,
    rng: str = "eager",
    max_slowdown: float | None = None,
    timing: bool = True,
    loss: Callable[[Any], Any] | None = None,
    dynamic_shapes: Any = None,
    name: str | None = None,
    settings: CaptureSettings | None = None,
    progress: Callable[[str], None] | None = None,
) -> ValidationResult:
    """Compile one training step under each strategy, run it beside eager, and compare tensor by tensor.

    `model` and `inputs` are as for `aotcli.trace`; the model is built on real tensors and never changed. `backend` is
    aot_eager or inductor, `steps` the optimizer steps after which weights are compared (0: none). `max_slowdown`
    fails a step that takes longer than that many times the step under PyTorch's own partitioner; `timing` False
    leaves times out.

    Raises InputError for an option that makes no sense, StrategyError for an unknown strategy, WorkloadError where the
    model cannot be built or fails in eager, EnvironmentProblem where the device or memory is missing.
    """
    _check(backend, steps, rng, max_slowdown)
    chosen = choose_strategies(strategy, options)
    settings = dataclasses.replace(settings or CaptureSettings(), level="inductor" if backend == "inductor" else "aten")
    if rng == "graphsafe" and settings.device.partition(":")[0] != "cuda":
        raise InputError(
            "--rng graphsafe is for CUDA graphs",
            why=f"random states on {settings.device} are saved and set again, which keeps eager's numbers",
            fix="leave --rng off, or add --device cuda",
        )
    from aotcli.api import workload_of
    from aotcli.capture.environment import require_torch

    require_torch()
    from aotcli.validation.run import Demands
    from aotcli.validation.run import validate as run

    workload = workload_of(model, inputs, settings, loss=loss, dynamic_shapes=dynamic_shapes, name=name)
    demands = Demands(backend, steps, rng, max_slowdown, timing or max_slowdown is not None)
    pairs = [(each.label, each.strategy) for each in chosen]
    return ValidationResult(run(workload, settings, pairs, demands, progress or (lambda message: None)))


def _check(backend: str, steps: int, rng: str, max_slowdown: float | None) -> None:
    for option, value, known in (("--backend", backend, BACKENDS), ("--rng", rng, RNGS)):
        if value not in known:
            raise InputError(
                f"{option} {value}", why=f"it is one of {', '.join(known)}", fix=f"{option} {known[0]} is the default"
            )
    if steps < 0:
        raise InputError(f"--steps {steps}", why="it counts steps of an optimizer", fix="--steps 0 leaves them out")
    if max_slowdown is not None and not max_slowdown > 0:
        raise InputError(
            f"--max-slowdown {max_slowdown:g}",
            why="it is a ratio of times: 1.1 allows ten percent more than PyTorch's own partitioner",
            fix="give a number above 0, such as 1.1",
        )
