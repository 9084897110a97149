"""Checks: the gradients of parameters, and of inputs that ask for one, are eager's."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.reference import Part
from aotcli.validation.subject import gradients_of, input_gradients_of

CHECK = "parameter gradients"
INPUT_CHECK = "input gradients"


def check(evidence: Evidence) -> CheckResult:
    """The gradients of parameters."""
    return _check(evidence, CHECK, gradients_of, "no parameter has a gradient")


def check_inputs(evidence: Evidence) -> CheckResult:
    """The gradients of inputs."""
    return _check(evidence, INPUT_CHECK, input_gradients_of, "no input asks for a gradient")


def _check(evidence: Evidence, check: str, part: Part, nothing: str) -> CheckResult:
    expected, found = evidence.reference.expected(part), part(evidence.step)
    if not expected.eager and not found:
        return CheckResult(check, Outcome.SKIP, nothing)
    result = compare(check, found, expected, "tensor")
    return attributed(evidence, result, found, expected, lambda run: part(run.step))
