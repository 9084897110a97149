"""Check: the compiled step's outputs are eager's, and alias the inputs that eager's alias."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import outputs_of

CHECK = "outputs"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    eager, compiled = evidence.reference.eager.step, evidence.step
    if not eager.outputs:
        return CheckResult(CHECK, Outcome.SKIP, "the step returns no tensor")
    if compiled.aliases != eager.aliases:
        odd = sorted(compiled.aliases ^ eager.aliases)
        details = tuple(
            f"{output} {'shares' if (output, owner) in compiled.aliases else 'does not share'} the storage of {owner},"
            " and in eager it is the other way round"
            for output, owner in odd
        )
        return CheckResult(CHECK, Outcome.FAIL, details[0], details=details)
    expected = evidence.reference.expected(outputs_of)
    result = compare(CHECK, compiled.outputs, expected, "tensor")
    return attributed(evidence, result, compiled.outputs, expected, lambda run: run.step.outputs)
