"""Models that cannot be captured, or not on fake tensors: a fallback with a note, or one clear error."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from aotcli.capture.trace import Capture, capture
from aotcli.capture.workload import object_workload
from aotcli.errors import AotcliError, CaptureError, WorkloadError
from aotcli.ir.trace import CaptureSettings


def run(forward: object, tensors: str = "auto") -> Capture:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> object:
            return forward(self.linear(x))  # type: ignore[operator]

    return capture(object_workload(Model(), (torch.ones(3, 4),)), CaptureSettings(level="aten", tensors=tensors))


def branches_on_data(y: Tensor) -> Tensor:
    return y * 2 if y.sum().item() > 0 else y.sin()


def test_data_dependent_code_falls_back_to_real_tensors_and_says_why() -> None:
    trace = run(branches_on_data).trace
    assert trace.tensors == "real"
    (note,) = [each for each in trace.notes if each.startswith("traced on real tensors")]
    assert "_local_scalar_dense" in note
    assert "test_capture_errors.py" in note
    assert len(trace.regions) > 1
    assert "item()" in trace.breaks[0].reason


def test_data_dependent_code_with_tensors_fake_is_an_error() -> None:
    with pytest.raises(CaptureError) as caught:
        run(branches_on_data, tensors="fake")
    assert "fake tensors" in caught.value.what
    assert "_local_scalar_dense" in caught.value.why
    assert "--tensors auto" in caught.value.fix


def test_a_model_that_raises_is_reported_with_its_line() -> None:
    with pytest.raises(AotcliError) as caught:
        run(lambda y: y.view(3, 7))
    assert "invalid for input of size 12" in caught.value.why
    assert "test_capture_errors.py" in str(caught.value)


class Wrapped:
    def __init__(self, value: Tensor) -> None:
        self.value = value


@pytest.mark.parametrize(
    ("forward", "found"), [(lambda y: 3, "int"), (lambda y: None, "NoneType"), (Wrapped, "Wrapped")]
)
def test_an_output_without_a_tensor_is_named(forward: object, found: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        run(forward)
    assert "returns no tensor" in caught.value.what
    assert found in caught.value.why
    assert "pytree" in caught.value.fix


@torch.library.custom_op("aotcli_tests::no_fake", mutates_args=())
def no_fake(x: Tensor) -> Tensor:
    return x.sin()


def test_an_op_unsupported_in_capture_is_named_with_its_line() -> None:
    with pytest.raises(CaptureError) as caught:
        run(no_fake)
    assert "aotcli_tests::no_fake" in caught.value.why
    assert "test_capture_errors.py:" in caught.value.what


def test_the_callers_model_and_random_state_are_left_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    for tensors in ("fake", "real"):
        capture(object_workload(model, (torch.ones(3, 4),)), CaptureSettings(tensors=tensors))
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(type(value) is nn.Parameter and value.grad is None for value in model.parameters())


class WritesAfterABreak(nn.Module):
    """Writes into what the region before the break returned, which is a view: nothing is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        normal = self.norm(x)
        hidden = nn.functional.dropout(self.linear(normal), 0.0)
        torch._dynamo.graph_break()
        hidden[:1] = 0.0
        return hidden * 2, normal


@pytest.mark.parametrize("level", ["aten", "inductor"])
def test_a_step_may_write_into_what_a_region_returned(level: str) -> None:
    workload = object_workload(WritesAfterABreak(), (torch.ones(2, 3, 4),))
    assert len(capture(workload, CaptureSettings(level=level, tensors="real")).regions) == 2


class BreaksInside(nn.Module):
    """What follows the break has no parameter: its gradient goes to an activation alone."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x).sin()
        torch._dynamo.graph_break()
        return x.exp()


@pytest.mark.parametrize("level", ["aten", "inductor"])
def test_fake_tensors_show_the_regions_that_real_ones_show(level: str) -> None:
    workload = object_workload(nn.Sequential(BreaksInside(), BreaksInside()), (torch.ones(3, 4),), loss=Tensor.sum)
    fake, real = (
        [(graph.fingerprint, graph.has_backward) for graph in capture(workload, settings).trace.regions]
        for settings in (CaptureSettings(level=level, tensors="fake"), CaptureSettings(level=level, tensors="real"))
    )
    assert len(real) == 4
    assert all(backward for _, backward in real)
    assert fake == real
