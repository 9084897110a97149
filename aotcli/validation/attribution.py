"""Whose error it is: where Inductor's numbers are too far from eager's, the same step under PyTorch's own partitioner.

Inductor fuses and decomposes, and sums up in another order than eager. A step that recomputes nothing, compiled by the
same Inductor, shows what that alone does. A plan that is at most twice as far off as it, beyond the bound for eager,
has changed nothing that the compiler has not: such a row is no PASS, because the step is further from exact than was
allowed, and no FAIL of the plan; it is INFO, and names the baseline. What loses more than half the digits is a FAIL
whatever the baseline does: that is no rounding, unless eager itself loses nearly as many (a tiny batch through many
BatchNorms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.validation.closeness import Expected, within_rounding, worse_than
from aotcli.validation.evidence import Evidence
from aotcli.validation.reference import WholeRun
from aotcli.validation.subject import Tensors

BASELINE = "torch-default"


def attributed(
    evidence: Evidence, result: CheckResult, found: Tensors, expected: Expected, part: Callable[[WholeRun], Tensors]
) -> CheckResult:
    """`result` of comparing `found` with `expected`, judged again beside the baseline where it is a FAIL.

    `part` takes out of a run what was compared.
    """
    if evidence.backend != "inductor" or result.outcome is not Outcome.FAIL or result.unit is not Unit.ERROR:
        return result
    baseline = part(evidence.baseline())
    if baseline.keys() != expected.eager.keys():
        return replace(result, details=(f"{BASELINE} under Inductor gives other tensors", *result.details))
    if not within_rounding(found, expected, evidence.reference.amplified):
        return replace(result, details=("more than half the digits are wrong: this is no rounding", *result.details))
    worse = worse_than(baseline, found, expected)
    if worse:
        line = f"{BASELINE} under Inductor is nearer: {worse[0]}" + (f" and {len(worse) - 1} more" if worse[1:] else "")
        return replace(result, details=(line, *result.details))
    reason = f"{result.reason} by Inductor's rounding, not the plan: {BASELINE} under Inductor is as far off"
    return replace(result, outcome=Outcome.INFO, reason=reason)
