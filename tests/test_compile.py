"""The three ways to compile are one: the same split and eager's gradients; and none needs PyTorch's partitioners."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from samples import ROOT
from steps import run_step, sample_step

import aotcli
from aotcli.errors import StrategyError

torch = pytest.importorskip("torch")

STRATEGIES = ("save-all", "mincut", "recompute-all")
BROAD = ("mlp", "gpt", "input_mutation", "batchnorm", "several_outputs", "graph_break", "selective_checkpoint")
HOSTILE = ("dynamic_shapes", "function", "inference", "tied_weights", "attention", "resnet", "unet", "dropout")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def splits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], list[str]]]:
    """Level, saved values and backward nodes of every split that is made, in order."""
    from aotcli.lowering import partitioner

    made: list[tuple[str, list[str], list[str]]] = []
    original = partitioner.carry_out

    def noting(strategy: Any, live: Any, **rest: Any) -> Any:
        modules, partition = original(strategy, live, **rest)
        made.append((live.level, [value.name for value in partition.saved], list(partition.backward_nodes)))
        return modules, partition

    monkeypatch.setattr(partitioner, "carry_out", noting)
    return made


def ways(strategy: str, base: str) -> dict[str, Callable[[Any], Any]]:
    found = {
        "aotcli.compile": lambda m: aotcli.compile(m, strategy=strategy, backend=base),
        "entry point": lambda m: torch.compile(m, backend="aotcli", options={"strategy": strategy, "backend": base}),
    }
    if base == "inductor":
        options = {"custom_partitioner_fn": aotcli.Partitioner(strategy)}
        found["custom_partitioner_fn"] = lambda m: torch.compile(m, options=options)
    return found


@pytest.mark.parametrize("sample", [*BROAD, *HOSTILE])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_aot_eager_gives_the_gradients_of_eager(sample: str, strategy: str, splits: list[Any]) -> None:
    module, args, kwargs = sample_step(sample)
    eager = run_step(module, args, kwargs)
    seen = {}
    for name, wrap in ways(strategy, "aot_eager").items():
        if name != "aotcli.compile" and sample not in BROAD:
            continue
        splits.clear()
        torch._dynamo.reset()
        assert not eager.differences(run_step(module, args, kwargs, wrap), bitwise=True), name
        seen[name] = list(splits)
    assert all(each == splits for each in seen.values())
    assert bool(splits) == (sample != "inference")
    assert all(level == "aten" for level, *_ in splits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "strategy"), [("gpt", "mincut"), ("input_mutation", "recompute-all"), ("graph_break", "save-all")]
)
def test_inductor_gives_the_gradients_of_eager_three_ways(sample: str, strategy: str, splits: list[Any]) -> None:
    from torch._inductor import config

    module, args, kwargs = sample_step(sample)
    eager = run_step(module, args, kwargs)
    seen = {}
    # Not monkeypatch: this setting stands for another one, and what it deletes when it undoes is lost for good.
    with config.patch(force_disable_caches=True):
        for name, wrap in ways(strategy, "inductor").items():
            splits.clear()
            torch._dynamo.reset()
            assert not eager.differences(run_step(module, args, kwargs, wrap), bitwise=False), name
            seen[name] = list(splits)
    assert seen["aotcli.compile"] == seen["entry point"] == seen["custom_partitioner_fn"]
    assert splits
    assert all(level == "inductor" for level, *_ in splits)


def test_our_strategies_need_none_of_pytorchs_partitioners(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._functorch.partitioners as theirs

    from aotcli.strategies import strategy_class, strategy_names

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("a partition function of PyTorch was called")

    for name in ("default_partition", "min_cut_rematerialization_partition", "_extract_fwd_bwd_modules"):
        monkeypatch.setattr(theirs, name, refuse)
    module, args, kwargs = sample_step("mlp")
    eager = run_step(module, args, kwargs)
    ran = []
    for name in strategy_names():
        if name.startswith("torch-") or strategy_class(name).argument is not None:
            continue
        torch._dynamo.reset()
        compiled = run_step(module, args, kwargs, lambda m, name=name: aotcli.compile(m, strategy=name))
        assert not eager.differences(compiled), name
        ran.append(name)
    assert {"save-all", "mincut", "recompute-all"} <= set(ran)
    with pytest.raises(Exception, match="a partition function of PyTorch was called"):
        run_step(module, args, kwargs, lambda m: aotcli.compile(m, strategy="torch-mincut"))


@pytest.mark.parametrize("way", ["aotcli.compile", "entry point"])
def test_one_option_set_is_compiled_once(way: str) -> None:
    from torch._dynamo.utils import counters

    module, args, kwargs = sample_step("mlp")
    counters.clear()
    for strategy, graphs in (("mincut", 1), ("mincut", 1), ("save-all", 2), ("mincut", 2)):
        ways(strategy, "aot_eager")[way](module)(*args, **kwargs)
        assert counters["stats"]["unique_graphs"] == graphs


def test_unknown_options_are_errors() -> None:
    module, args, kwargs = sample_step("mlp")
    for wrong, text in (
        ({"strategy": "mincutt"}, "mincutt"),
        ({"agressive": True}, "agressive"),
        ({"backend": "eager"}, "no backend 'eager'"),
        ({"rng": "lucky"}, "rng"),
    ):
        with pytest.raises(StrategyError, match=text):
            aotcli.compile(module, **wrong)
        with pytest.raises(Exception, match=text):
            torch.compile(module, backend="aotcli", options=wrong)(*args, **kwargs)
    with pytest.raises(Exception, match="did you mean 'strategy'"):
        torch.compile(module, backend="aotcli", options={"strateg": "mincut"})(*args, **kwargs)
    with pytest.raises(Exception, match="mode"):
        torch.compile(module, backend="aotcli", mode="max-autotune")(*args, **kwargs)


def test_outputs_that_alias_inputs_and_each_other() -> None:
    def model(x: Any, w: Any) -> Any:
        y = (x * w).sin()
        return x.view(-1), y, y[0], x

    class Step(torch.nn.Module):
        def forward(self, x: Any, w: Any) -> Any:
            return model(x, w)

    args = (torch.randn(4, 8), torch.randn(8, requires_grad=True))
    eager = run_step(Step(), args, {})
    for strategy in STRATEGIES:
        compiled = run_step(Step(), args, {}, lambda m, s=strategy: aotcli.compile(m, strategy=s))
        assert not eager.differences(compiled), strategy


def test_one_compiled_module_serves_twice_in_a_step_and_from_several_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    module, args, _ = sample_step("mlp")
    x = args[0].clone().requires_grad_()
    compiled = aotcli.compile(module, strategy="recompute-all", fullgraph=True)

    def gradient(step: Any, scale: float) -> Any:
        return torch.autograd.grad(step(x, *args[1:]) * step(scale * x, *args[1:]), x)[0]

    expected = [gradient(module, scale) for scale in (1.0, 2.0, 3.0)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda scale: gradient(compiled, scale), (1.0, 2.0, 3.0)))
    assert all(torch.equal(left, right) for left, right in zip(expected, found, strict=True))


def test_fullgraph_refuses_a_graph_break() -> None:
    module, args, kwargs = sample_step("graph_break")
    with pytest.raises(Exception, match="disable"):
        aotcli.compile(module, fullgraph=True)(*args, **kwargs)


def test_one_graph_serves_other_sizes() -> None:
    from torch._dynamo.utils import counters

    counters.clear()
    module, _, _ = sample_step("mlp")
    compiled = aotcli.compile(module, strategy="recompute-all", dynamic=True)
    width = next(iter(module.parameters())).shape[1]
    for batch in (4, 7, 9):
        x = torch.randn(batch, width, requires_grad=True)
        (expected,) = torch.autograd.grad(module(x), x)
        (found,) = torch.autograd.grad(compiled(x), x)
        assert torch.equal(expected, found)
    assert counters["stats"]["unique_graphs"] == 1


def test_retained_graphs_run_again() -> None:
    module, args, kwargs = sample_step("mlp")
    x = args[0].clone().requires_grad_()
    loss = aotcli.compile(module, strategy="recompute-all")(x, *args[1:], **kwargs)
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (again,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, again)


@pytest.mark.parametrize("strategy", ["save-all", "torch-default", "mincut"])
@pytest.mark.parametrize("sample", ["mlp", "several_outputs", "graph_break"])
def test_a_loss_made_of_gradients_is_refused(sample: str, strategy: str) -> None:
    """Also where no parameter is saved, so that PyTorch has nothing to hang its own error on."""
    module, args, kwargs = sample_step(sample)
    parameters = list(module.parameters())
    outputs = aotcli.compile(module, strategy=strategy)(*args, **kwargs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    loss = sum(output.sum() for output in outputs if output.requires_grad)
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    penalty = sum(gradient.square().sum() for gradient in gradients)
    for whole in (penalty, loss + penalty):
        with pytest.raises(RuntimeError, match="does not currently support double backward"):
            torch.autograd.grad(whole, parameters, allow_unused=True, retain_graph=True)


def test_gradients_with_a_graph_are_eagers_gradients() -> None:
    module, args, kwargs = sample_step("several_outputs")
    found = []
    for step in (module, aotcli.compile(module, strategy="save-all")):
        module.zero_grad()
        outputs = step(*args, **kwargs)
        torch.autograd.backward([outputs[0].sum(), outputs[1].sum()], create_graph=True)
        found.append([parameter.grad.detach().clone() for parameter in module.parameters()])
    assert all(torch.equal(left, right) for left, right in zip(*found, strict=True))


def test_importing_stays_light() -> None:
    code = "import sys, aotcli; aotcli.__all__; assert 'torch' not in sys.modules; aotcli.Partitioner; aotcli.compile"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
