"""Checks: the gradients of parameters, and of inputs that ask for one, are eager's."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence

CHECK = "parameter gradients"
INPUT_CHECK = "input gradients"


def check(evidence: Evidence) -> CheckResult:
    """The gradients of parameters."""
    return _check(evidence, CHECK, "gradients", "no parameter has a gradient")


def check_inputs(evidence: Evidence) -> CheckResult:
    """The gradients of inputs."""
    return _check(evidence, INPUT_CHECK, "input_gradients", "no input asks for a gradient")


def _check(evidence: Evidence, check: str, part: str, nothing: str) -> CheckResult:
    expected = evidence.reference.expected(part)
    found = evidence.step.gradients if part == "gradients" else evidence.step.input_gradients
    if not expected.eager and not found:
        return CheckResult(check, Outcome.SKIP, nothing)
    return attributed(evidence, compare(check, found, expected, "tensor"), part)
