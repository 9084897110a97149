"""Every check of `validate` fails where it should: each is shown a step that was spoilt in the way it looks for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aotcli.ir.outcome import CheckResult, Outcome

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from aotcli.api.validation import ValidationResult, validate  # noqa: E402

HERE = Path(__file__).parent


class Counting(nn.Module):
    """Two square layers, a buffer that counts, and dropout where asked."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        self.drop = nn.Dropout(p)
        self.register_buffer("seen", torch.ones(16))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(torch.sin(self.first(x)))
        self.seen.add_(hidden.detach().mean(0))
        return self.second(hidden).square()


def checked(model: nn.Module, strategy: str, **options: Any) -> ValidationResult:
    torch.manual_seed(0)
    x = torch.randn(8, 16, requires_grad=True)
    options = {"timing": False, "loss": Tensor.mean, **options}
    return validate(model, (x,), strategy=strategy, **options)


@cache
def spoilt(name: str, p: float = 0.0) -> ValidationResult:
    return checked(Counting(p), f"{HERE / 'saboteurs.py'}:{name}")


def row(result: ValidationResult, check: str) -> CheckResult:
    (strategy,) = result.validation.strategies
    return next(each for each in strategy.checks if each.check == check)


def assert_fails(result: ValidationResult, check: str) -> CheckResult:
    found = row(result, check)
    assert found.outcome is Outcome.FAIL, result
    assert result.exit_code == 1
    return found


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_what_is_not_spoilt_passes(p: float) -> None:
    result = checked(Counting(p), "save-all")
    assert result.exit_code == 0, result
    assert row(result, "buffers and inputs").outcome is Outcome.PASS
    assert row(result, "input gradients").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("saboteur", "check"),
    [
        ("scale_output", "outputs"),
        ("swap_gradients", "parameter gradients"),
        ("swap_gradients", "trained weights"),
        ("negate_gradients", "input gradients"),
        ("scale_mutation", "buffers and inputs"),
        ("draw_once_more", "random state"),
        ("redraw_masks", "parameter gradients"),
        ("change_with_every_backward", "second backward"),
        ("save_something_else", "saved storages"),
        ("inflate_peak", "peak as predicted"),
    ],
)
def test_a_spoilt_step_fails_its_check(saboteur: str, check: str) -> None:
    assert_fails(spoilt(saboteur), check)


def test_what_a_saboteur_leaves_alone_passes() -> None:
    result = spoilt("swap_gradients")
    for check in ("outputs", "buffers and inputs", "random state", "saved storages", "graph as shown"):
        assert row(result, check).outcome is Outcome.PASS, check
    assert "first.weight" in " ".join(row(result, "parameter gradients").details)


def test_a_slow_step_fails_when_a_limit_is_set() -> None:
    strategy = f"{HERE / 'saboteurs.py'}:sleep"
    found = assert_fails(checked(Counting(0.0), strategy, max_slowdown=2.0, steps=0), "step time")
    assert found.measured is not None
    assert found.measured > 2


def test_without_a_limit_time_is_only_told() -> None:
    result = checked(Counting(0.0), f"{HERE / 'saboteurs.py'}:sleep", timing=True, steps=0)
    assert row(result, "step time").outcome is Outcome.INFO
    assert result.exit_code == 0


def test_another_graph_than_shown_fails_with_its_first_difference(tmp_path: Path) -> None:
    file = tmp_path / "two_faced.py"
    file.write_text(
        "import torch\n"
        "from torch import nn\n"
        "def model():\n"
        "    made = nn.Linear(8, 8)\n"
        "    fake = type(torch.empty(1 << 20)).__name__ == 'FakeTensor'\n"
        "    return nn.Sequential(made, nn.Sigmoid() if fake else nn.ReLU())\n"
        "def inputs():\n"
        "    return (torch.randn(4, 8),)\n"
        "def loss(y):\n"
        "    return y.sum()\n"
    )
    result = validate(str(file), timing=False, steps=0)
    found = assert_fails(result, "graph as shown")
    text = " ".join((found.reason, *found.details))
    assert "aten.sigmoid.default" in text
    assert "aten.relu.default" in text
