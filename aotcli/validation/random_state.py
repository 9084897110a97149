"""Check: after the step, the generators stand where they stand after eager's: later draws are eager's too."""

from __future__ import annotations

import torch

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.evidence import Evidence

CHECK = "random state"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    eager, compiled = evidence.reference.eager.step, evidence.step
    same = all(torch.equal(left, right) for left, right in zip(eager.random_state, compiled.random_state, strict=True))
    if not same:
        drew = "draws more or fewer random numbers than eager" if compiled.drew else "draws none, and eager does"
        return CheckResult(CHECK, Outcome.FAIL, f"the compiled step {drew}")
    if not eager.drew:
        return CheckResult(CHECK, Outcome.PASS, "neither draws a random number")
    return CheckResult(CHECK, Outcome.PASS, "as after eager, byte for byte")
