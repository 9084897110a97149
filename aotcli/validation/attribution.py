"""Whose error it is: where Inductor's numbers are too far from eager's, the same step under PyTorch's own partitioner.

Inductor fuses and decomposes, and rounds otherwise than eager for it (BatchNorm, above all). Where a step that
recomputes nothing gives the same numbers, the plan is not what changed them. The verdict stays as it is: the compiled
step is further from exact than was allowed. Only its reader is told where to look.
"""

from __future__ import annotations

from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.validation.closeness import Expected, compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import Tensors

BASELINE = "torch-default"


def attributed(evidence: Evidence, result: CheckResult, part: str) -> CheckResult:
    """`result` with a line that says whether PyTorch's default partition gives the same numbers; verdict unchanged.

    `part` is the field of the step that was compared.
    """
    if evidence.backend != "inductor" or result.outcome is not Outcome.FAIL or result.unit is not Unit.ERROR:
        return result
    baseline: Tensors = getattr(evidence.first_step(BASELINE, eager_random=True), part)
    ours: Tensors = getattr(evidence.step, part)
    alike = compare(result.check, ours, Expected(baseline), "tensor").outcome is Outcome.PASS
    line = (
        f"{BASELINE} under Inductor gives the same numbers: this is the compiler's rounding, not the plan's"
        if alike
        else f"{BASELINE} under Inductor gives other numbers"
    )
    return replace(result, details=(line, *result.details))
