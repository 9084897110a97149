"""`validate` on a GPU: run by `make test-cuda`, skipped with a reason where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from aotcli.api.validation import validate  # noqa: E402
from aotcli.ir.outcome import Outcome  # noqa: E402
from aotcli.ir.trace import CaptureSettings  # noqa: E402

ROOT = Path(__file__).parents[2]
STRATEGIES = ("save-all", "mincut", "recompute-all")
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: `aotcli doctor` says why"),
]
SMALL_GPT = (("layers", "2"), ("width", "128"), ("batch", "2"), ("seq", "64"), ("vocab", "1000"))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    ("sample", "overrides"),
    [("mlp", ()), ("dropout", ()), ("batchnorm", ()), ("input_mutation", ()), ("gpt", SMALL_GPT)],
)
def test_samples_pass(sample: str, overrides: tuple[tuple[str, str], ...], backend: str) -> None:
    settings = CaptureSettings(device="cuda", overrides=overrides)
    path = str(ROOT / "sample_models" / f"{sample}.py")
    result = validate(path, strategy=STRATEGIES, settings=settings, backend=backend, timing=False)
    assert result.exit_code == 0, result


def test_graph_safe_states_are_consistent() -> None:
    path = str(ROOT / "sample_models" / "dropout.py")
    result = validate(path, settings=CaptureSettings(device="cuda"), rng="graphsafe", timing=False)
    assert result.exit_code == 0, result


def test_a_step_too_large_says_so_and_the_next_strategy_runs() -> None:
    spoilt = f"{ROOT / 'tests' / 'saboteurs.py'}:run_out_of_memory"
    settings = CaptureSettings(device="cuda")
    result = validate(
        str(ROOT / "sample_models" / "mlp.py"), strategy=(spoilt, "mincut"), settings=settings, timing=False
    )
    first, second = result.validation.strategies
    assert first.checks[0].outcome is Outcome.FAIL
    assert "out of memory" in first.checks[0].reason
    assert second.proven
