"""Check: the compiled step's outputs are eager's, and alias the inputs that eager's alias."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence

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
    result = compare(CHECK, compiled.outputs, evidence.reference.expected("outputs"), "tensor")
    return attributed(evidence, result, "outputs")
