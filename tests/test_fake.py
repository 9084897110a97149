"""Building on fake tensors: what becomes fake, what stays tied, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from aotcli.capture.fake import FAKE_ABOVE_ELEMENTS, Converter, large_tensors_fake, tensors_of  # noqa: E402
from aotcli.capture.torch_private_build import is_fake, new_fake_mode  # noqa: E402

ROOT = Path(__file__).parents[1]


def converter(**options: object) -> Converter:
    return Converter(new_fake_mode(), **{"dtype": None, "device": "cpu", **options})  # type: ignore[arg-type]


def test_large_tensors_are_born_fake_and_small_ones_real() -> None:
    with large_tensors_fake(new_fake_mode()):
        small = torch.linspace(0, 1, 12)
        assert [round(each.item(), 2) for each in small][-1] == 1.0
        assert not is_fake(torch.empty(FAKE_ABOVE_ELEMENTS))
        large = torch.randn(FAKE_ABOVE_ELEMENTS + 1)
        assert is_fake(large)
        assert is_fake(large[:3] + small[:3])
        assert is_fake(nn.Linear(300, 300).to(torch.bfloat16).weight)
    assert not is_fake(torch.empty(FAKE_ABOVE_ELEMENTS + 1))


def test_initializers_that_resample_leave_fake_tensors_alone() -> None:
    with large_tensors_fake(new_fake_mode()):
        nn.init.trunc_normal_(nn.Parameter(torch.empty(300, 300)), std=0.02)
        small = nn.init.trunc_normal_(torch.empty(10, 10), std=0.02)
    assert small.abs().max() > 0
    assert nn.init.trunc_normal_(torch.zeros(300, 300)).abs().max() > 0


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.head = nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.masks = [torch.ones(4), {"deep": (torch.ones(4),)}]
        self.rnn = nn.LSTM(4, 4)


def test_conversion_keeps_ties_gradients_and_structure() -> None:
    model = Held()
    converter().module(model)
    assert model.head.weight is model.embed.weight
    assert len(list(model.parameters())) == 2 + len(list(model.rnn.parameters()))
    assert all(is_fake(each) and isinstance(each, nn.Parameter) for each in model.parameters())
    assert [model.frozen.requires_grad, model.embed.weight.requires_grad] == [False, True]
    assert is_fake(model.scale)
    assert "scale" not in model.state_dict()
    assert is_fake(model.masks[0])
    assert is_fake(model.masks[1]["deep"][0])  # type: ignore[index]
    assert model.rnn._flat_weights[0] is model.rnn.weight_ih_l0


def test_views_of_one_storage_stay_so() -> None:
    base = torch.ones(6)
    whole, part = converter().tree([base, base[2:]])
    assert whole.untyped_storage()._cdata == part.untyped_storage()._cdata


def test_a_copy_leaves_the_model_as_it_is() -> None:
    model = Held()
    twin = converter(dtype=torch.float64).copy_of(model)
    assert twin.head.weight is twin.embed.weight
    assert (twin.head.weight.dtype, is_fake(twin.head.weight)) == (torch.float64, True)
    assert not any(is_fake(each) for each in (*model.parameters(), *model.buffers(), model.masks[0]))


def test_real_conversion_changes_only_what_it_has_to() -> None:
    model = Held()
    weight = model.embed.weight
    same = Converter(None, dtype=None, device="cpu")
    same.module(model)
    assert model.embed.weight is weight
    Converter(None, dtype=torch.bfloat16, device="cpu").module(model)
    assert (model.embed.weight.dtype, model.head.weight is model.embed.weight) == (torch.bfloat16, True)
    assert torch.equal(model.embed.weight, weight.to(torch.bfloat16))


def test_closures_and_globals_are_converted() -> None:
    weight, table = torch.ones(3), {"bias": torch.ones(3)}
    module = nn.Linear(3, 3)

    def step(x: torch.Tensor) -> torch.Tensor:
        return module(x) * weight + table["bias"]

    convert = converter()
    convert.function(step)
    assert is_fake(weight)
    assert is_fake(table["bias"])
    assert is_fake(module.weight)
    names = {"weight": torch.ones(3), "net": nn.Linear(2, 2), "number": 3}
    changed = convert.namespace(names)
    assert list(changed) == ["weight"]
    assert is_fake(names["net"].weight)  # type: ignore[union-attr]
    assert len(tensors_of({**names, **changed})) == 3


@pytest.mark.slow
def test_seventy_billion_parameters_fit() -> None:
    """An 80-layer, 8192-wide Llama builds and runs its forward under 1.2 GiB resident."""
    pytest.importorskip("transformers")
    code = """if True:
        import resource, sys
        from aotcli.capture.workload import build, load_workload
        from aotcli.capture.eager import measure_eager
        from aotcli.ir.trace import CaptureSettings
        sets = {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64,
                "num_key_value_heads": 8, "batch": 1, "seq": 4096}
        settings = CaptureSettings(dtype="bf16", overrides=tuple((k, str(v)) for k, v in sets.items()))
        built = build(load_workload("hf:llama", settings), settings, fake=True)
        assert sum(p.numel() for p in built.model.parameters()) > 68e9
        saved, notes = measure_eager(built)
        assert saved.saved_bytes > 100e9, notes
        unit = 1 if sys.platform == "darwin" else 1024
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1.2 * 2**30
