"""What a compiled step is compared with: the same step in eager, once more, and in float64.

Eager runs twice from one seed, to see whether the model gives the same numbers twice. The float64 step shows how far
eager itself is from exact arithmetic; a step that cannot run in float64 is compared with eager alone.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from aotcli.capture.user_error import describe_error, explain_error
from aotcli.errors import WorkloadError
from aotcli.validation.allocator import measure_peak
from aotcli.validation.closeness import Expected, largest_error, rounding_of, same, within_rounding
from aotcli.validation.memory import is_out_of_memory, out_of_memory
from aotcli.validation.precise_random import DrawsNarrow
from aotcli.validation.subject import (
    Original,
    StepRun,
    Subject,
    Tensors,
    gradients_of,
    input_gradients_of,
    outputs_of,
    state_of,
)
from aotcli.validation.training import train

Part = Callable[[StepRun], Tensors]
"""What of a step is looked at."""
PARTS: tuple[Part, ...] = (outputs_of, gradients_of, input_gradients_of, state_of)

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass
class WholeRun:
    """One copy: its first step, and its weights after training on."""

    step: StepRun
    weights: Tensors


@dataclass
class Reference:
    """Eager's results, or those of the step of `whose` in their place.

    `again` is None for a model that is deterministic, `precise` where float64 was not to be had, `relaid` (channels
    last) where the compiler keeps eager's layout. `rounded` is where eager's rounding is known from, if not from here.
    """

    eager: WholeRun
    again: WholeRun | None
    precise: WholeRun | None
    relaid: WholeRun | None
    peak_bytes: int
    subject: Subject
    changed: frozenset[str]
    notes: tuple[str, ...]
    whose: str = "eager"
    rounded: Reference | None = None

    def replaced_by(self, run: WholeRun, whose: str) -> Reference:
        """Results of another compiled step in eager's place, which rounds as eager does."""
        return replace(self, eager=run, again=None, precise=None, relaid=None, whose=whose, rounded=self)

    def expected(self, part: Part) -> Expected:
        """What a part of the first step should be."""
        runs = (self.precise, self.again, self.relaid)
        precise, again, relaid = (None if run is None else part(run.step) for run in runs)
        rounding = {} if self.rounded is None else rounding_of(self.rounded.expected(part))
        return Expected(part(self.eager.step), precise, again, relaid, rounding, self.whose)

    def expected_weights(self) -> Expected:
        """Parameters after the training steps."""
        runs = (self.precise, self.again, self.relaid)
        precise, again, relaid = (None if run is None else run.weights for run in runs)
        rounding = {} if self.rounded is None else rounding_of(self.rounded.expected_weights())
        return Expected(self.eager.weights, precise, again, relaid, rounding, self.whose)

    @functools.cached_property
    def amplified(self) -> float:
        """How far eager is from float64 at most, relative to the largest tensor of a kind: what a step that magnifies
        rounding makes of it."""
        return max(largest_error(self.expected(part)) for part in PARTS)

    @property
    def text(self) -> str:
        return "eager alone" if self.precise is None else "float64 beside eager"


def make_reference(original: Original, seed: int, steps: int, root: Path, *, relaid: bool) -> Reference:
    """Run the step in eager; with `relaid`, channels last as well where it has convolutions.

    Raises WorkloadError where the model fails in eager, EnvironmentProblem where memory does not suffice.
    """
    subject = Subject(original)
    try:
        eager = whole_run(subject, seed, steps)
    except Exception as error:  # the user's model may raise anything
        if is_out_of_memory(error):
            raise out_of_memory("running the step in eager", error) from error
        raise WorkloadError(
            "the model fails in eager, before anything is compiled",
            why=explain_error(error, root),
            fix="run one training step of it without aotcli and mend that first",
        ) from error
    notes: list[str] = []
    again: WholeRun | None = whole_run(Subject(original), seed, steps)
    if _equal(eager, again):
        again = None
    else:
        notes.append("the model is not deterministic: eager gave other numbers the second time; compared within that")
    precise, note = _precise(original, seed, steps, eager)
    notes += [note] if note else []
    other = _channels_last(original, seed, steps, eager, precise) if relaid else None
    if other is not None:
        notes.append("Inductor lays convolutions out channels last: eager's error is that of its worse layout")
    if not eager.step.differentiable:
        notes.append("no output needs a gradient: there is no backward, and only the forward is checked")
    changed = subject.changed(eager.step)
    subject.clear_gradients()
    args, kwargs = subject.inputs()
    peak = measure_peak(lambda: subject.backward(subject.forward(args, kwargs)), subject.device)
    return Reference(eager, again, precise, other, peak, subject, changed, tuple(notes))


def whole_run(subject: Subject, seed: int, steps: int) -> WholeRun:
    """Run the first step of a copy that has not run yet, and train on."""
    step = subject.watched_step(seed)
    return WholeRun(step, train(subject, seed, steps))


def _equal(left: WholeRun, right: WholeRun) -> bool:
    pairs = [(part(left.step), part(right.step)) for part in PARTS]
    return all(same(*pair) for pair in (*pairs, (left.weights, right.weights)))


def _precise(original: Original, seed: int, steps: int, eager: WholeRun) -> tuple[WholeRun | None, str]:
    """The float64 run, or None and why."""
    tensors = (*eager.step.state.values(), *eager.step.outputs.values())
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    narrow = next((dtype for dtype in _FLOATS if dtype in dtypes), None)
    if narrow is None:
        return None, "" if torch.float64 in dtypes else "nothing floats: compared for equality"
    try:
        with DrawsNarrow(narrow) if eager.step.drew else nullcontext():
            found = whole_run(Subject(original).to_float64(), seed, steps)
    except Exception as error:  # noqa: BLE001 - the user's model may raise anything when its dtype is another
        first = describe_error(error).splitlines()[0]
        return None, f"no float64 reference: the step raised {first}"
    finally:
        gc.collect()
    drawn = zip(eager.step.random_state, found.step.random_state, strict=True)
    if not all(torch.equal(left, right) for left, right in drawn):
        return None, "no float64 reference: the step draws other random numbers there"
    return found, ""


def _channels_last(
    original: Original, seed: int, steps: int, eager: WholeRun, precise: WholeRun | None
) -> WholeRun | None:
    """Eager's run in the layout of Inductor's convolutions; None where it has none, or gives more than other rounding.

    A step that draws random numbers draws them in the order of memory: it would be another step.
    """
    if eager.step.drew or not any(parameter.dim() in (4, 5) for parameter in original.built.step.parameters()):
        return None
    try:
        found = whole_run(Subject(original).to_channels_last(), seed, steps)
    except Exception:  # noqa: BLE001 - the user's model may ask for a layout of its own
        return None
    finally:
        gc.collect()
    for part in PARTS:
        exact = None if precise is None else part(precise.step)
        if not within_rounding(part(found.step), Expected(part(eager.step), exact)):
            return None
    return found
