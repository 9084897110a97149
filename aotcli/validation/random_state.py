"""Check: after the step, the generators stand where they stand after eager's: later draws are eager's too."""

from __future__ import annotations

import torch

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import StepRun

CHECK = "random state"


def same_draws(left: StepRun, right: StepRun) -> bool:
    """Whether the generators stand alike after two steps."""
    return all(torch.equal(a, b) for a, b in zip(left.random_state, right.random_state, strict=True))


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    eager, compiled = evidence.reference.eager.step, evidence.step
    if evidence.reference.whose != "eager":
        whose = evidence.reference.whose
        return CheckResult(CHECK, Outcome.INFO, f"not eager's: torch.compile draws other numbers, under {whose} too")
    if not same_draws(eager, compiled):
        drew = "draws more or fewer random numbers than eager" if compiled.drew else "draws none, and eager does"
        return CheckResult(CHECK, Outcome.FAIL, f"the compiled step {drew}")
    if not eager.drew:
        return CheckResult(CHECK, Outcome.PASS, "neither draws a random number")
    return CheckResult(CHECK, Outcome.PASS, "as after eager, byte for byte")
