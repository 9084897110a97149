"""`validate` on the sample models under our strategies, where PyTorch is known to be wrong, and on bad input."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT, SAMPLES, SMALL

from aotcli.cli.main import run
from aotcli.ir.outcome import CheckResult, Outcome, StrategyValidation
from aotcli.ir.trace import CaptureSettings

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from aotcli.api.validation import ValidationResult, validate  # noqa: E402
from aotcli.errors import EnvironmentProblem, InputError, WorkloadError  # noqa: E402

STRATEGIES = ("save-all", "mincut", "recompute-all")
SABOTEURS = Path(__file__).parent / "saboteurs.py"


def of_sample(sample: str, strategy: Any, **options: Any) -> ValidationResult:
    settings = CaptureSettings(overrides=SMALL.get(sample, ()))
    options = {"timing": False, "steps": 2, **options}
    return validate(str(ROOT / "sample_models" / f"{sample}.py"), strategy=strategy, settings=settings, **options)


def of_model(model: Any, inputs: Any, **options: Any) -> ValidationResult:
    return validate(model, inputs, **{"timing": False, "steps": 1, **options})


def row(strategy: StrategyValidation, check: str) -> CheckResult:
    return next(each for each in strategy.checks if each.check == check)


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_pass_under_every_strategy_of_ours(sample: str) -> None:
    # Many convolutions take long under a compiler: one strategy shows what there is to see.
    result = of_sample(sample, "mincut" if sample == "resnet" else STRATEGIES)
    assert result.exit_code == 0, result
    for strategy in result.validation.strategies:
        assert strategy.proven
        for check in strategy.checks:
            assert check.outcome is not Outcome.FAIL
            if check.outcome is Outcome.SKIP:
                assert check.reason


def test_random_ops_give_eagers_gradients_bit_by_bit() -> None:
    for strategy in of_sample("dropout", STRATEGIES).validation.strategies:
        for check in ("outputs", "parameter gradients", "trained weights"):
            assert "bitwise" in row(strategy, check).reason, (strategy.label, check)
        assert row(strategy, "random state").outcome is Outcome.PASS


def torch_redraws_masks() -> bool:
    """Whether the installed PyTorch recomputes dropout with another mask under its own memory budget."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop
    from torch._functorch import config
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def gradient(function: Any) -> Tensor:
        torch.manual_seed(0)
        weight = torch.ones(64, 64, requires_grad=True)
        torch.manual_seed(1)
        function(torch.eye(64), weight).backward()
        assert weight.grad is not None
        return weight.grad

    def step(x: Tensor, weight: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.nn.functional.dropout((x @ weight).sin(), 0.5)
        return x.sum()

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=min_cut_rematerialization_partition
    )
    with config.patch(activation_memory_budget=0.5):
        compiled = gradient(torch.compile(step, backend=backend))
    torch._dynamo.reset()
    return not torch.allclose(compiled, gradient(step))


def test_pytorchs_redrawn_masks_are_found_and_ours_are_not_redrawn() -> None:
    theirs, ours = of_sample("dropout", ("torch-mincut:budget=0.5", "mincut")).validation.strategies
    assert ours.proven
    expected = Outcome.FAIL if torch_redraws_masks() else Outcome.PASS
    assert row(theirs, "parameter gradients").outcome is expected


def torch_reads_what_has_changed() -> bool:
    """Whether the installed PyTorch's min cut recomputes from a buffer after the step has changed it."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    class Decaying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))
            self.register_buffer("scale", torch.full((8,), 3.0))

        def forward(self, x: Tensor) -> Tensor:
            y = (x * self.weight) * (self.scale * 2)
            self.scale.mul_(0.5)
            return y

    torch._dynamo.reset()
    model = Decaying()
    backend = aot_autograd(
        fw_compiler=boxed_nop,
        bw_compiler=boxed_nop,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    torch.compile(model, backend=backend)(torch.ones(64, 8)).sum().backward()
    torch._dynamo.reset()
    assert model.weight.grad is not None
    return not torch.allclose(model.weight.grad, torch.full((8,), 64 * 6.0))


def test_pytorchs_stale_reads_are_found_and_ours_are_right() -> None:
    theirs, ours = of_sample("input_mutation", ("torch-mincut", "mincut")).validation.strategies
    assert ours.proven
    assert row(ours, "buffers and inputs").outcome is Outcome.PASS
    expected = Outcome.FAIL if torch_reads_what_has_changed() else Outcome.PASS
    assert row(theirs, "parameter gradients").outcome is expected


@pytest.mark.slow
def test_inductor_draws_eagers_numbers_and_its_own() -> None:
    result = of_sample("dropout", ("recompute-all", "torch-mincut:budget=0.5"), backend="inductor", steps=1)
    strategy, theirs = result.validation.strategies
    assert strategy.proven, result
    own = row(strategy, "own random numbers")
    assert own.outcome is Outcome.PASS
    assert own.reason.startswith("op by op, 9 tensors bitwise save-all's; compiled, ")
    redrawn = row(theirs, "own random numbers")
    if row(theirs, "parameter gradients").outcome is Outcome.FAIL:  # PyTorch's budget draws masks again
        assert redrawn.outcome is Outcome.FAIL
        assert "op by op" in redrawn.reason
    assert row(strategy, "peak as predicted").outcome is Outcome.INFO
    assert "unfused estimate" in row(strategy, "peak as predicted").reason


def test_the_peak_of_several_regions_lies_between_bounds() -> None:
    for strategy in of_sample("graph_break", STRATEGIES, steps=1).validation.strategies:
        found = row(strategy, "peak as predicted")
        assert found.outcome is Outcome.PASS
        assert "3 regions together" in found.reason
        assert found.measured is not None
        assert found.tolerance is not None
        assert 0 < found.measured <= 1.01 * found.tolerance


def test_a_step_without_a_gradient_says_so_and_checks_its_outputs() -> None:
    result = of_sample("inference", "mincut")
    assert result.exit_code == 0
    assert any("no output needs a gradient" in note for note in result.validation.notes)
    (strategy,) = result.validation.strategies
    assert row(strategy, "outputs").outcome is Outcome.PASS
    assert row(strategy, "saved storages").outcome is Outcome.SKIP


class Wasteful(nn.Module):
    """Draws a number that nobody reads: what compiles it does not draw it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        torch.rand(3)
        return torch.nn.functional.dropout(self.fc(x).sin(), 0.5)


def test_where_torch_compile_itself_draws_other_numbers_its_default_partition_is_the_measure() -> None:
    result = of_model(Wasteful(), (torch.randn(4, 8),), loss=Tensor.sum, strategy=(*STRATEGIES, "torch-mincut"))
    assert result.exit_code == 0, result
    for strategy in result.validation.strategies:
        assert "compared with torch-default" in strategy.notes[0]
        assert row(strategy, "random state").outcome is Outcome.INFO
        assert "bitwise torch-default's" in row(strategy, "parameter gradients").reason


def test_a_spoilt_step_is_still_measured_against_eager() -> None:
    spoilt = f"{SABOTEURS}:draw_once_more"
    (strategy,) = of_sample("dropout", spoilt, steps=1).validation.strategies
    assert row(strategy, "random state").outcome is Outcome.FAIL
    assert not any("compared with" in note for note in strategy.notes)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x).sin()
        torch._dynamo.graph_break()
        return x.exp()


def test_a_region_that_runs_twice_is_held_to_its_plan_each_time() -> None:
    """One compiled frame serves both layers."""
    result = of_model(nn.Sequential(Layer(), Layer()), (torch.randn(4, 16),), loss=Tensor.sum, strategy=STRATEGIES)
    assert result.exit_code == 0, result
    for strategy in result.validation.strategies:
        assert row(strategy, "saved storages").outcome is Outcome.PASS
        found = row(strategy, "peak as predicted")
        assert found.outcome is Outcome.PASS, found
        assert "5 regions together" in found.reason  # 4 are compiled


class Numpy(nn.Module):
    """A mask from another generator than torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    @torch.compiler.disable
    def mask(self) -> Tensor:
        import numpy as np

        return torch.from_numpy(np.random.rand(8) > random.random())

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) * self.mask()


def test_other_generators_are_seeded_too_and_left_as_they_were() -> None:
    pytest.importorskip("numpy")
    import numpy as np

    before = random.getstate(), np.random.get_state()[1].tolist()
    result = of_model(Numpy(), (torch.randn(4, 8),), loss=Tensor.sum)
    assert result.exit_code == 0, result
    assert not result.validation.notes
    assert "bitwise" in row(result.validation.strategies[0], "parameter gradients").reason
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


class Noisy(nn.Module):
    """Adds what no seed of torch's decides."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return noisy(self.fc(x))


@torch.library.custom_op("aotcli_tests::noisy", mutates_args=())
def noisy(x: Tensor) -> Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(torch.seed() % 1000))
    return x * (1 + 1e-2 * noise)


noisy.register_fake(torch.empty_like)
noisy.register_autograd(lambda context, gradient: gradient)


def test_a_model_that_is_not_deterministic_is_compared_within_its_spread() -> None:
    result = of_model(Noisy(), (torch.randn(4, 8),), loss=Tensor.sum)
    assert any("not deterministic" in note for note in result.validation.notes)
    (strategy,) = result.validation.strategies
    assert row(strategy, "parameter gradients").outcome is Outcome.PASS


def test_outputs_that_alias_inputs() -> None:
    def aliasing(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (x * weight).sin(), x.view(-1), x

    result = of_model(aliasing, (torch.randn(4, 8), torch.randn(8, requires_grad=True)))
    assert result.exit_code == 0, result
    assert row(result.validation.strategies[0], "outputs").outcome is Outcome.PASS


GLOBALS = """
import torch
from torch import nn

table = torch.randn(16)
scale = torch.randn(16, requires_grad=True)
net = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16))


class Reading(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return (self.linear(x) * table * scale).relu()


def model():
    return Reading()


def step(x):
    return net((x * scale).sin() + table)


def inputs():
    return (torch.randn(8, 16),)


def loss(output):
    return output.square().sum()
"""


@pytest.mark.parametrize("name", ["model", "step"])
def test_what_a_step_reads_by_name_is_each_copys_own(name: str, tmp_path: Path) -> None:
    """Eager trains first: were the tensors shared, the compiled step would begin where eager left off."""
    file = tmp_path / "reading.py"
    file.write_text(GLOBALS)
    result = validate(f"{file}:{name}", strategy=STRATEGIES, steps=3, timing=False)
    assert result.validation.reference == "float64 beside eager"
    assert not result.validation.notes
    for strategy in result.validation.strategies:
        assert strategy.proven, result
        for check in ("outputs", "parameter gradients", "trained weights"):
            assert "bitwise" in row(strategy, check).reason, (name, check)
    if name == "step":
        assert row(strategy, "buffers and inputs").outcome is Outcome.PASS


@pytest.mark.parametrize(("sample", "who"), [("mlp", "torch"), ("several_outputs", "aotcli")])
def test_what_retain_graph_and_double_backward_do_is_said(sample: str, who: str) -> None:
    """torch refuses where it saved a parameter or gave a buffer away; aotcli in every other case."""
    (strategy,) = of_sample(sample, "save-all").validation.strategies
    assert row(strategy, "second backward").outcome is Outcome.PASS
    double = row(strategy, "double backward")
    assert double.outcome is Outcome.INFO
    assert double.reason.startswith(f"{who} refuses it: ")


def test_gradients_that_are_constants_without_a_word_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from aotcli.lowering import backend

    monkeypatch.setattr(backend, "refusing_double_backward", lambda compiled: compiled)
    (strategy,) = of_sample("several_outputs", "save-all").validation.strategies
    double = row(strategy, "double backward")
    assert (double.outcome, double.reason.partition(":")[0]) == (Outcome.FAIL, "not refused")


def test_out_of_memory_says_what_was_running_and_the_next_strategy_runs() -> None:
    spoilt, ours = of_sample("mlp", (f"{SABOTEURS}:run_out_of_memory", "mincut")).validation.strategies
    (only,) = spoilt.checks
    assert only.outcome is Outcome.FAIL
    assert only.reason == "out of memory while compiling and running the first step"
    assert ours.proven


class Raising(torch.autograd.Function):
    """Fails in its backward with the error that it is given."""

    @staticmethod
    def forward(context: Any, x: Tensor, error: Exception) -> Tensor:
        context.error = error
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        raise context.error


@pytest.mark.parametrize("early", [True, False], ids=["forward", "backward"])
@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (ValueError("the shapes are wrong"), WorkloadError, "the model (raised when it was called|fails in eager)"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 EiB"), EnvironmentProblem, "out of memory"),
    ],
    ids=["error", "memory"],
)
def test_what_fails_in_eager_is_reported_as_such(error: Exception, kind: Any, what: str, early: bool) -> None:
    def broken(x: Tensor) -> Tensor:
        if early:
            raise error
        return Raising.apply(x, error)

    with pytest.raises(kind, match=what) as caught:
        of_model(broken, (torch.randn(2, requires_grad=True),))
    assert str(error) in caught.value.why
    assert "eager" in caught.value.what or early


def test_cuda_is_refused_where_there_is_none() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(EnvironmentProblem, match="no CUDA device"):
        of_model(nn.Linear(2, 2), (torch.randn(2),), settings=CaptureSettings(device="cuda"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "eager"}, "--backend eager"),
        ({"steps": -1}, "--steps -1"),
        ({"rng": "philox"}, "--rng philox"),
        ({"rng": "graphsafe"}, "graphsafe is for CUDA"),
        ({"max_slowdown": 0.0}, "--max-slowdown 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        of_model(nn.Linear(2, 2), (torch.randn(2),), **options)


MLP = ("validate", "sample_models/mlp.py", "--no-time", "--steps", "1")


def test_the_command_line_ends_with_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run([*MLP, "--strategy", "mincut", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "aotcli.validation"
    assert document["strategies"][0]["passed"] is True
    assert run([*MLP, "--strategy", f"{SABOTEURS}:negate_gradients"]) == 1
    assert "FAIL  parameter gradients" in capsys.readouterr().out


def test_the_command_line_refuses_what_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run([*MLP, "--level", "inductor"]) == 2
    assert "--level inductor does not go with --backend aot_eager" in capsys.readouterr().err
    record = tmp_path / "x.aot.json"
    record.write_text("{}")
    assert run(["validate", str(record)]) == 2
    assert "nothing can be run from it" in capsys.readouterr().err


def test_graph_safe_steps_that_draw_are_compared_with_themselves() -> None:
    from aotcli.capture.workload import load_workload
    from aotcli.strategies import load_strategy
    from aotcli.validation.run import Demands
    from aotcli.validation.run import validate as run_checks

    settings = CaptureSettings()
    workload = load_workload(str(ROOT / "sample_models" / "dropout.py"), settings)
    demands = Demands(rng="graphsafe", timing=False)
    found = run_checks(workload, settings, [("mincut", load_strategy("mincut"))], demands, lambda message: None)
    (strategy,) = found.strategies
    assert row(strategy, "self-consistency").outcome is Outcome.PASS
    assert not any(check.check == "outputs" for check in strategy.checks)


@pytest.mark.slow
def test_inductors_layout_of_convolutions_is_allowed_for_and_a_spoilt_digit_is_not() -> None:
    """BatchNorm under Inductor sums up channels last, as eager does in that layout; a wrong plan shows all the same."""
    spoilt = f"{SABOTEURS}:nudge_gradients"
    result = of_sample("batchnorm", ("mincut", spoilt), backend="inductor", steps=1)
    assert any("channels last" in note for note in result.validation.notes)
    ours, theirs = result.validation.strategies
    for check in ("outputs", "parameter gradients", "buffers and inputs", "trained weights"):
        assert row(ours, check).outcome in (Outcome.PASS, Outcome.INFO), result
    assert ours.proven
    found = row(theirs, "parameter gradients")
    assert found.outcome is Outcome.FAIL, result
    assert "torch-default under Inductor is nearer" in found.details[0]
