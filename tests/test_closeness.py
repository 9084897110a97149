"""What counts as equal, as rounding, and as no worse than another compiled step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from aotcli.ir.outcome import CheckResult, Outcome, Unit  # noqa: E402
from aotcli.validation.attribution import attributed  # noqa: E402
from aotcli.validation.closeness import Expected, compare, largest_error, within_rounding, worse_than  # noqa: E402

EXACT = torch.arange(1.0, 101.0, dtype=torch.float64)


def off(by: float) -> dict[str, Any]:
    """A tensor whose relative error is `by`."""
    return {"w": (EXACT * (1 + by)).float()}


def expected(eager: float, relaid: float | None = None) -> Expected:
    return Expected(off(eager), {"w": EXACT}, relaid=None if relaid is None else off(relaid))


@pytest.mark.parametrize(
    ("error", "eager", "relaid", "outcome"),
    [
        (1.9e-5, 1e-5, None, Outcome.PASS),
        (2.2e-5, 1e-5, None, Outcome.FAIL),
        (5.9e-5, 1e-5, 3e-5, Outcome.PASS),
        (6.4e-5, 1e-5, 3e-5, Outcome.FAIL),
        (1.9e-5, 1e-5, 1e-7, Outcome.PASS),
    ],
)
def test_the_bound_is_twice_the_error_of_eager_in_its_worse_layout(
    error: float, eager: float, relaid: float | None, outcome: Outcome
) -> None:
    assert compare("x", off(error), expected(eager, relaid), "tensor").outcome is outcome


def test_rounding_leaves_half_of_the_digits() -> None:
    assert within_rounding(off(3e-4), expected(1e-7))
    assert not within_rounding(off(4e-4), expected(1e-7))
    assert not within_rounding({}, expected(1e-7))


def test_a_tensor_that_is_nought_but_for_cancellation_is_measured_by_the_largest() -> None:
    nought = Expected({"b": torch.full((3,), 1e-6), **off(0)}, {"b": torch.zeros(3, dtype=torch.float64), "w": EXACT})
    assert within_rounding({"b": torch.full((3,), 1e-3), **off(0)}, nought)
    assert not within_rounding({"b": torch.full((3,), 1.0), **off(0)}, nought)


def test_worse_than_a_baseline_is_more_than_twice_as_far_off() -> None:
    assert not worse_than(off(1e-5), off(1.9e-5), expected(1e-8))
    assert worse_than(off(1e-5), off(2.2e-5), expected(1e-8)) == ["w"]


@dataclass
class Reference:
    amplified: float


class Evidence:
    """What attribution reads: the backend, the step under PyTorch's default partition, and how far off eager is."""

    def __init__(self, backend: str, baseline: dict[str, Any], amplified: float) -> None:
        self.backend = backend
        self.baseline = lambda: baseline
        self.reference = Reference(amplified)


def judged(
    error: float, *, baseline: dict[str, Any], backend: str = "inductor", amplified: float = 1e-8
) -> CheckResult:
    found, target = off(error), expected(1e-8)
    result = compare("parameter gradients", found, target, "tensor")
    evidence: Any = Evidence(backend, baseline, amplified)
    return attributed(evidence, result, found, target, lambda run: run)  # type: ignore[arg-type, return-value]


def test_what_the_compiler_alone_does_is_no_failure_of_the_plan_and_no_proof() -> None:
    result = judged(1.5e-5, baseline=off(1e-5))
    assert result.outcome is Outcome.INFO
    assert "torch-default under Inductor is as far off" in result.reason
    assert result.unit is Unit.ERROR
    assert result.measured is not None
    assert result.tolerance is not None
    assert result.measured > result.tolerance


@pytest.mark.parametrize(
    ("error", "baseline", "told"),
    [
        (1e-4, off(1e-5), "is nearer: w"),
        (1e-3, off(1e-3), "no rounding"),
        (1e-4, {"other": EXACT}, "gives other tensors"),
    ],
    ids=["worse", "large", "other"],
)
def test_a_failure_stays_one(error: float, baseline: dict[str, Any], told: str) -> None:
    result = judged(error, baseline=baseline)
    assert result.outcome is Outcome.FAIL
    assert told in result.details[0]


def test_a_step_that_magnifies_rounding_is_judged_by_what_eager_makes_of_it() -> None:
    assert largest_error(Expected({**off(1e-2), "b": torch.ones(1)}, {"w": EXACT, "b": torch.ones(1)})) > 9e-3
    assert judged(1e-1, baseline=off(1e-1), amplified=1e-2).outcome is Outcome.INFO
    assert judged(1e-1, baseline=off(1e-1), amplified=1e-3).outcome is Outcome.FAIL
    assert judged(1e-1, baseline=off(1e-2), amplified=1e-2).outcome is Outcome.FAIL


def test_under_aot_eager_nothing_is_excused() -> None:
    assert judged(1.5e-5, baseline=off(1e-5), backend="aot_eager").outcome is Outcome.FAIL
