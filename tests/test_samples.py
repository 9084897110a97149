"""Every sample model runs a step in eager, so that what goes wrong elsewhere is not the sample's fault."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

SAMPLES = Path(__file__).parents[1] / "sample_models"
NAMES = {
    "attention",
    "batchnorm",
    "dropout",
    "dynamic_shapes",
    "function",
    "gpt",
    "graph_break",
    "inference",
    "input_mutation",
    "mlp",
    "resnet",
    "selective_checkpoint",
    "several_outputs",
    "tied_weights",
    "unet",
}
SMALL: dict[str, dict[str, int]] = {
    "gpt": {"layers": 2, "width": 128, "batch": 2, "seq": 64, "vocab": 1000},
    "resnet": {"width": 8, "batch": 2, "size": 32},
    "unet": {"width": 4, "batch": 1, "size": 32},
}


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / f"{name}.py"))


def call(factory: Callable[..., Any], settings: dict[str, int]) -> Any:
    """`factory` with those of `settings` that it has a parameter for, as `--set` does."""
    known = signature(factory).parameters
    return factory(**{key: value for key, value in settings.items() if key in known})


def is_factory(thing: Callable[..., Any]) -> bool:
    return all(each.default is not Parameter.empty for each in signature(thing).parameters.values())


def tensors(output: Any) -> list[torch.Tensor]:
    return [output] if isinstance(output, torch.Tensor) else list(output)


def test_the_list_of_samples_is_complete() -> None:
    assert {path.stem for path in SAMPLES.glob("*.py")} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_step_runs_in_eager(name: str) -> None:
    torch.manual_seed(0)
    sample = load(name)
    settings = SMALL.get(name, {})
    model = call(sample["model"], settings) if is_factory(sample["model"]) else sample["model"]
    given = call(sample["inputs"], settings)
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    output = model(*args, **kwargs)
    if "loss" in sample:
        output = sample["loss"](output)
        assert output.shape == ()
    differentiable = [each for each in tensors(output) if each.requires_grad]
    if name == "inference":
        assert not differentiable
        return
    torch.autograd.backward(differentiable, [torch.ones_like(each) for each in differentiable])
    leaves = list(model.parameters()) if isinstance(model, torch.nn.Module) else list(given.values())
    gradients = [leaf.grad for leaf in leaves if leaf.requires_grad]
    assert gradients
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_gpt_has_the_size_of_gpt2_small() -> None:
    with torch.device("meta"):
        model = load("gpt")["model"]()
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808


def test_several_outputs_has_some_without_gradient() -> None:
    sample = load("several_outputs")
    needs = [each.requires_grad for each in sample["model"]()(*sample["inputs"]())]
    assert needs == [True, True, False, False]


def test_input_mutation_changes_buffer_and_input() -> None:
    sample = load("input_mutation")
    model, (x, count) = sample["model"](), sample["inputs"]()
    model(x, count)
    assert model.scale.eq(0.5).all()
    assert count.item() == 1
