"""Check, where random states are graph-safe: two steps from one seed give the same numbers.

Graph-safe generators draw other numbers than eager by design, so a step that draws can only be compared with itself.
"""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.closeness import Expected, compare
from aotcli.validation.evidence import Evidence

CHECK = "self-consistency"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    again = evidence.another().watched_step(evidence.seed)
    first = {**evidence.step.outputs, **evidence.step.gradients, **evidence.step.input_gradients}
    second = {**again.outputs, **again.gradients, **again.input_gradients}
    result = compare(CHECK, second, Expected(first), "tensor")
    if result.outcome is Outcome.PASS:
        return CheckResult(CHECK, Outcome.PASS, f"{len(first)} tensors, the same from the same seed")
    return result
