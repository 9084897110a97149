"""Check: after some steps of an optimizer, compiled and eager training hold the same weights."""

from __future__ import annotations

from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.training import train

CHECK = "trained weights"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring. The compiled copy trains on from its first step."""
    if not evidence.steps:
        return CheckResult(CHECK, Outcome.SKIP, "--steps 0")
    expected = evidence.reference.expected_weights()
    if not expected.eager:
        return CheckResult(CHECK, Outcome.SKIP, "no parameter has a gradient")
    found = train(evidence.subject, evidence.seed, evidence.steps)
    result = compare(CHECK, found, expected, "parameter")
    result = attributed(evidence, result, found, expected, lambda run: run.weights)
    steps = f"{evidence.steps} step{'' if evidence.steps == 1 else 's'} of SGD"
    return replace(result, reason=f"{result.reason}; {steps}")
