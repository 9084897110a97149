"""Check, under Inductor alone: with Inductor's own random numbers, the step equals the same step under `save-all`.

Inductor draws other numbers than eager, so eager says nothing about them. `save-all` keeps every mask: a strategy that
draws one again gets other gradients than it. Two comparisons. Op by op, without code generation, the two steps must be
equal bit by bit. As compiled they may differ by rounding, because what is fused with what, and so the order of sums,
follows from the plan; how many tensors are equal all the same is said.
"""

from __future__ import annotations

from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.closeness import Expected, compare, identical, rounding_of
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import StepRun, Tensors, gradients_of, input_gradients_of, outputs_of

CHECK = "own random numbers"
KEEPS_ALL = "save-all"
_PARTS = (outputs_of, gradients_of, input_gradients_of)


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    if evidence.backend != "inductor":
        return CheckResult(CHECK, Outcome.SKIP, "aot_eager draws eager's numbers")
    if not evidence.reference.eager.step.drew:
        return CheckResult(CHECK, Outcome.SKIP, "the step draws no random number")
    exact = _op_by_op(evidence)
    if exact.outcome is Outcome.FAIL:
        return exact
    found = _tensors(evidence.first_step(evidence.strategy, eager_random=False))
    kept = _tensors(evidence.first_step(KEEPS_ALL, eager_random=False))
    rounding = {k: v for part in _PARTS for k, v in rounding_of(evidence.reference.expected(part)).items()}
    result = compare(CHECK, found, Expected(kept, rounding=rounding), "tensor")
    if result.outcome is not Outcome.PASS:
        return result
    equal = sum(identical(found[name], kept[name]) for name in kept)
    rest = "" if equal == len(kept) else ", the rest but for the order of fused sums"
    return replace(result, reason=f"{exact.reason}; compiled, {equal} of {len(kept)} bitwise{rest}")


def _op_by_op(evidence: Evidence) -> CheckResult:
    """Whether the step under the strategy and under `save-all` is one and the same, before anything is fused."""
    if evidence.reference.again is not None:
        return CheckResult(CHECK, Outcome.SKIP, "not deterministic, so not compared op by op")
    found, kept = (_tensors(evidence.unfused_step(each)) for each in (evidence.strategy, KEEPS_ALL))
    odd = [name for name in kept if name not in found or not identical(found[name], kept[name])]
    if odd:
        reason = f"{odd[0]} is not {KEEPS_ALL}'s, op by op" + (f", and {len(odd) - 1} more" if odd[1:] else "")
        return CheckResult(CHECK, Outcome.FAIL, reason, details=tuple(odd[:5]))
    return CheckResult(CHECK, Outcome.PASS, f"op by op, {len(kept)} tensors bitwise {KEEPS_ALL}'s")


def _tensors(step: StepRun) -> Tensors:
    return {name: tensor for part in _PARTS for name, tensor in part(step).items()}
