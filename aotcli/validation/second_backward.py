"""Checks: what a second backward gives, through one forward or through the gradients.

What the first backward freed or drew must not make a later one wrong. With retain_graph the gradients are the first's;
a backward through the gradients (create_graph) is one that compiled code does not support: it is refused. A number that
differs is a FAIL, and so are gradients that are constants to autograd: a loss made of them would train nothing.
"""

from __future__ import annotations

import torch

from aotcli.capture.seeding import seed_generators
from aotcli.capture.torch_private_validate import undonated
from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.lowering.double_backward import DoubleBackwardError
from aotcli.validation.closeness import Expected, compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import Subject, Tensors, kept

CHECK = "second backward"
DOUBLE_CHECK = "double backward"


def check(evidence: Evidence) -> list[CheckResult]:
    """Both rows."""
    if not evidence.reference.eager.step.gradients:
        nothing = "no parameter has a gradient"
        return [CheckResult(name, Outcome.SKIP, nothing) for name in (CHECK, DOUBLE_CHECK)]
    return [_retained(evidence), _double(evidence)]


def _retained(evidence: Evidence) -> CheckResult:
    try:
        try:
            first, second = _two_backwards(evidence.subject, evidence.seed)
        except RuntimeError as error:
            if "donated" not in str(error) or evidence.backend == "inductor":
                raise
            # torch.compile refuses until donation is off: see what a user gets who turns it off.
            with undonated():
                first, second = _two_backwards(evidence.another(), evidence.seed)
    except RuntimeError as error:
        return CheckResult(CHECK, Outcome.INFO, f"torch refuses retain_graph=True: {_first_line(error)}")
    result = compare(CHECK, second, Expected(first), "gradient")
    if result.outcome is Outcome.PASS:
        return CheckResult(CHECK, Outcome.PASS, "with retain_graph, the gradients of the first")
    if evidence.reference.again is not None:
        return CheckResult(CHECK, Outcome.SKIP, "the model is not deterministic")
    return result


def _two_backwards(subject: Subject, seed: int) -> tuple[Tensors, Tensors]:
    """The gradients of two backwards through one forward."""
    args, kwargs = subject.inputs()
    seed_generators(seed)
    subject.clear_gradients()
    outputs = subject.forward(args, kwargs)
    try:
        subject.backward(outputs, retain_graph=True)
        first = _taken(subject)
        subject.backward(outputs)
        return first, _taken(subject)
    finally:
        subject.clear_gradients()


def _double(evidence: Evidence) -> CheckResult:
    try:
        found = _gradients_of_gradients(evidence.subject, evidence.seed)
    except RuntimeError as error:
        who = "aotcli" if isinstance(error, DoubleBackwardError) else "torch"
        return CheckResult(DOUBLE_CHECK, Outcome.INFO, f"{who} refuses it: {_first_line(error)}")
    expected = _gradients_of_gradients(evidence.reference.subject, evidence.seed)
    if expected and not found:
        constant = "not refused: the gradients are constants, so that a loss made of them trains nothing"
        return CheckResult(DOUBLE_CHECK, Outcome.FAIL, constant)
    return compare(DOUBLE_CHECK, found, Expected(expected), "gradient")


def _gradients_of_gradients(subject: Subject, seed: int) -> Tensors:
    """The gradients of the sum of all squared gradients."""
    args, kwargs = subject.inputs()
    seed_generators(seed)
    outputs = [output for output in subject.forward(args, kwargs).values() if output.requires_grad]
    named = {name: p for name, p in subject.parameters.items() if p.requires_grad}
    total = sum((output.double().sum() for output in outputs), torch.zeros((), dtype=torch.float64))
    first = torch.autograd.grad(total, list(named.values()), create_graph=True, allow_unused=True)
    squares = [gradient.double().square().sum() for gradient in first if gradient is not None]
    if not any(square.requires_grad for square in squares):
        return {}
    second = torch.autograd.grad(sum(squares[1:], squares[0]), list(named.values()), allow_unused=True)
    return {name: kept(g) for name, g in zip(named, second, strict=True) if g is not None}


def _taken(subject: Subject) -> Tensors:
    found = {name: kept(p.grad) for name, p in subject.parameters.items() if p.grad is not None}
    subject.clear_gradients()
    return found


def _first_line(error: RuntimeError) -> str:
    """The first sentence of an error."""
    text = (str(error).splitlines() or [""])[0]
    return text.partition(". ")[0].strip()
