"""What a compiled step is compared with: the same step in eager, once more, and in float64.

Eager runs twice from one seed, to see whether the model gives the same numbers twice. The float64 step shows how far
eager itself is from exact arithmetic; a step that cannot run in float64 is compared with eager alone.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from aotcli.capture.user_error import describe_error, explain_error
from aotcli.capture.workload import BuiltWorkload
from aotcli.errors import WorkloadError
from aotcli.validation.allocator import measure_peak
from aotcli.validation.closeness import Expected, same
from aotcli.validation.memory import is_out_of_memory, out_of_memory
from aotcli.validation.precise_random import DrawsNarrow
from aotcli.validation.subject import StepRun, Subject, Tensors
from aotcli.validation.training import train

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass
class EagerRun:
    """One eager copy: its first step, and its weights after training on."""

    step: StepRun
    weights: Tensors


@dataclass
class Reference:
    """Eager's results. `again` is None for a model that is deterministic, `precise` where float64 was not to be had."""

    eager: EagerRun
    again: EagerRun | None
    precise: EagerRun | None
    peak_bytes: int
    subject: Subject
    changed: frozenset[str]
    notes: tuple[str, ...]

    def expected(self, part: str) -> Expected:
        """The part of the first step by its field's name: outputs, gradients, input_gradients, state."""
        runs = (self.eager, self.precise, self.again)
        eager, precise, again = (None if run is None else getattr(run.step, part) for run in runs)
        assert eager is not None
        return Expected(eager, precise, again)

    def expected_weights(self) -> Expected:
        """Parameters after the training steps."""
        precise = None if self.precise is None else self.precise.weights
        return Expected(self.eager.weights, precise, None if self.again is None else self.again.weights)

    @property
    def text(self) -> str:
        return "eager alone" if self.precise is None else "float64 beside eager"


def make_reference(built: BuiltWorkload, seed: int, steps: int, root: Path) -> Reference:
    """Run the step in eager.

    Raises WorkloadError where the model fails in eager, EnvironmentProblem where memory does not suffice.
    """
    subject = Subject(built)
    try:
        eager = _run(subject, seed, steps)
    except Exception as error:  # the user's model may raise anything
        if is_out_of_memory(error):
            raise out_of_memory("running the step in eager", error) from error
        raise WorkloadError(
            "the model fails in eager, before anything is compiled",
            why=explain_error(error, root),
            fix="run one training step of it without aotcli and mend that first",
        ) from error
    notes: list[str] = []
    again: EagerRun | None = _run(Subject(built), seed, steps)
    if _equal(eager, again):
        again = None
    else:
        notes.append("the model is not deterministic: eager gave other numbers the second time; compared within that")
    precise, note = _precise(built, seed, steps, eager)
    notes += [note] if note else []
    if not eager.step.differentiable:
        notes.append("no output needs a gradient: there is no backward, and only the forward is checked")
    changed = subject.changed(eager.step)
    subject.clear_gradients()
    args, kwargs = subject.inputs()
    peak = measure_peak(lambda: subject.backward(subject.forward(args, kwargs)), subject.device)
    return Reference(eager, again, precise, peak, subject, changed, tuple(notes))


def _run(subject: Subject, seed: int, steps: int) -> EagerRun:
    step = subject.watched_step(seed)
    return EagerRun(step, train(subject, seed, steps))


def _equal(left: EagerRun, right: EagerRun) -> bool:
    a, b = left.step, right.step
    pairs = ((a.outputs, b.outputs), (a.gradients, b.gradients), (a.input_gradients, b.input_gradients))
    return all(same(*pair) for pair in (*pairs, (a.state, b.state), (left.weights, right.weights)))


def _precise(built: BuiltWorkload, seed: int, steps: int, eager: EagerRun) -> tuple[EagerRun | None, str]:
    """The float64 run, or None and why."""
    tensors = (*eager.step.state.values(), *eager.step.outputs.values())
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    narrow = next((dtype for dtype in _FLOATS if dtype in dtypes), None)
    if narrow is None:
        return None, "" if torch.float64 in dtypes else "nothing floats: compared for equality"
    try:
        with DrawsNarrow(narrow) if eager.step.drew else nullcontext():
            found = _run(Subject(built).to_float64(), seed, steps)
    except Exception as error:  # noqa: BLE001 - the user's model may raise anything when its dtype is another
        first = describe_error(error).splitlines()[0]
        return None, f"no float64 reference: the step raised {first}"
    finally:
        gc.collect()
    drawn = zip(eager.step.random_state, found.step.random_state, strict=True)
    if not all(torch.equal(left, right) for left, right in drawn):
        return None, "no float64 reference: the step draws other random numbers there"
    return found, ""
