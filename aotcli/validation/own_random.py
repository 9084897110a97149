"""Check, under Inductor alone: with Inductor's own random numbers, the step equals the same step under `save-all`.

Inductor draws other numbers than eager, so eager says nothing about them. `save-all` keeps every mask: a strategy that
draws one again gets other gradients than it.
"""

from __future__ import annotations

from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.closeness import Expected, compare, rounding_of
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import gradients_of, input_gradients_of, outputs_of

CHECK = "own random numbers"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    if evidence.backend != "inductor":
        return CheckResult(CHECK, Outcome.SKIP, "aot_eager draws eager's numbers")
    if not evidence.reference.eager.step.drew:
        return CheckResult(CHECK, Outcome.SKIP, "the step draws no random number")
    kept = evidence.first_step("save-all", eager_random=False)
    ours = evidence.first_step(evidence.strategy, eager_random=False)
    found = {**ours.outputs, **ours.gradients, **ours.input_gradients}
    expected = {**kept.outputs, **kept.gradients, **kept.input_gradients}
    parts = (outputs_of, gradients_of, input_gradients_of)
    rounding = {k: v for part in parts for k, v in rounding_of(evidence.reference.expected(part)).items()}
    result = compare(CHECK, found, Expected(expected, rounding=rounding), "tensor")
    if result.outcome is Outcome.PASS:
        return replace(result, reason="save-all's outputs and gradients")
    return result
