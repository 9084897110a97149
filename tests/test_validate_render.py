"""How a validation ends and how it is shown: torch-free."""

from __future__ import annotations

import json
import math

import pytest

from aotcli.ir.outcome import CheckResult, Outcome, StrategyValidation, Unit, Validation
from aotcli.render.page import Page
from aotcli.render.validation_json import render_validation_json
from aotcli.render.validation_markdown import render_validation_markdown
from aotcli.render.validation_text import render_validation_text

GOOD = CheckResult("outputs", Outcome.PASS, "1 tensor; worst output 0", 2.1e-08, 5.2e-07, Unit.ERROR)
BAD = CheckResult(
    "parameter gradients", Outcome.FAIL, "fc.weight is off, and 3 more of 4 tensors", math.inf, 1e-6, Unit.ERROR,
    ("fc.weight: error inf, allowed 1.00e-06",),
)  # fmt: skip
SKIPPED = CheckResult("input gradients", Outcome.SKIP, "no input asks for a gradient")
PEAK = CheckResult("peak against eager", Outcome.INFO, "26.4 % less than eager", 345504.0, 458760.0, Unit.BYTES)
TIME = CheckResult("step time", Outcome.FAIL, "12 ms", 2.5, 1.1, Unit.RATIO)


def validation(*strategies: tuple[CheckResult, ...], notes: tuple[str, ...] = ()) -> Validation:
    return Validation(
        model="mlp",
        spec="mlp.py",
        torch="2.13.0+cpu",
        device="cpu",
        device_name=None,
        backend="aot_eager",
        level="aten",
        seed=0,
        steps=3,
        rng="eager",
        train=True,
        loss=True,
        reference="float64 beside eager",
        strategies=tuple(StrategyValidation(f"s{i}", checks) for i, checks in enumerate(strategies)),
        notes=notes,
    )


@pytest.mark.parametrize(
    ("strategies", "code"),
    [
        (((GOOD, SKIPPED),), 0),
        (((GOOD, BAD),), 1),
        (((SKIPPED,), (BAD,)), 1),
        (((SKIPPED,),), 3),
        (((GOOD,), (SKIPPED, PEAK)), 3),
        ((), 3),
    ],
)
def test_exit_codes(strategies: tuple[tuple[CheckResult, ...], ...], code: int) -> None:
    assert validation(*strategies).exit_code == code


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_text_fits_its_page_and_names_failures_first(width: int, unicode: bool) -> None:
    shown = validation((GOOD, SKIPPED, PEAK, BAD, TIME), notes=("the model is not deterministic",))
    text = render_validation_text(shown, Page(width, unicode=unicode))
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    rows = [line.split()[0] for line in lines if line[:4] in ("PASS", "FAIL", "INFO", "SKIP")]
    assert rows == ["FAIL", "FAIL", "FAIL", "PASS", "INFO", "SKIP"]
    assert "s0: 1 passed, 2 failed, 1 skipped" in text
    assert unicode or text.isascii()
    if width == 200:
        assert "outputs              2.1e-08 ≤ 5.2e-07" in text or not unicode
        assert "337.4 KiB / 448.0 KiB" in text


def test_json_is_valid_where_nothing_finite_was_measured() -> None:
    document = json.loads(render_validation_json(validation((GOOD, BAD))))
    assert document["exit_code"] == 1
    checks = {check["check"]: check for check in document["strategies"][0]["checks"]}
    assert checks["parameter gradients"]["measured"] == "inf"
    assert checks["outputs"]["tolerance"] == 5.2e-07


def test_markdown_has_a_row_for_each_check() -> None:
    text = render_validation_markdown(validation((GOOD, BAD, SKIPPED)))
    assert text.count("\n| PASS") == 1
    assert text.count("\n| FAIL") == 1
    assert "**FAIL** `s0`" in text
