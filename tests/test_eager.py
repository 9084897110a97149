"""What eager saves: by storage, once, without what is no activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts  # noqa: E402

from aotcli.capture.eager import measure_eager  # noqa: E402
from aotcli.capture.workload import build, load_workload, object_workload  # noqa: E402
from aotcli.ir.trace import CaptureSettings, EagerSaved  # noqa: E402


def measure(
    model: Any, *inputs: torch.Tensor, loss: Callable[[Any], Any] | None = None, fake: bool = True
) -> EagerSaved:
    saved, notes = measure_eager(build(object_workload(model, inputs, loss=loss), CaptureSettings(), fake=fake))
    assert saved is not None, notes
    return saved


def weight(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


@pytest.mark.parametrize("fake", [True, False])
def test_activations_are_told_from_inputs_and_outputs(fake: bool) -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden = x @ w  # saves x, and not w: x needs no gradient
        return hidden.sin().exp()  # saves hidden, and exp its own result: the output

    assert measure(step, torch.ones(4, 8), weight(8, 16), fake=fake) == EagerSaved(4 * 16 * 4, 32 * 4, 1)


def test_views_of_one_storage_count_once() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        hidden = x * 2
        return (hidden[:2].sin() + hidden[2:].cos()) * hidden.view(2, 2, 3)[0].expand(2, 2, 3)[0].tanh()

    saved = measure(step, weight(4, 3))
    # hidden once; sin + cos; tanh, which both tanh and the product save
    assert saved == EagerSaved((12 + 6 + 6) * 4, 0, 3)


def test_a_small_part_of_a_large_storage_holds_all_of_it() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x * 2)[:1].sin().sum()

    assert measure(step, weight(100)).saved_bytes == 400


def test_parameters_and_buffers_are_no_activations() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    saved = measure(model, torch.ones(4, 8), loss=torch.sum)
    assert saved.saved_bytes == (4 * 8 + 2 * 8) * 4  # the linear's result, and the batch's mean and deviation
    assert saved.saved_input_bytes >= (4 * 8 + 8) * 4  # the input and the norm's weight


def test_tied_weights_count_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    assert measure(Tied(), torch.ones(4, 8)) == EagerSaved(4 * 8 * 4, (4 * 8 + 8 * 8) * 4, 1)


def test_checkpointing_keeps_inputs_and_what_its_policy_saves() -> None:
    w = nn.Parameter(torch.ones(8, 16))

    def block(x: torch.Tensor) -> torch.Tensor:
        return (x @ w).sin().sum(-1)

    def plain(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(block, x * 2, use_reentrant=False)

    def policy(_context: Any, op: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def selective(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(
            block, x * 2, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
        )

    x = weight(4, 8)
    assert measure(plain, x).saved_bytes == 4 * 8 * 4
    assert measure(selective, x).saved_bytes == (4 * 8 + 4 * 16) * 4


def test_the_random_state_and_the_model_are_as_before() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    built = build(object_workload(model, torch.ones(2, 4)), CaptureSettings(), fake=False)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    measure_eager(built)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in built.model.parameters())


def test_a_step_that_cannot_run_gives_a_note() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x[: int(x.sum())]

    saved, notes = measure_eager(build(object_workload(step, weight(4)), CaptureSettings(loss=False), fake=True))
    assert saved is None
    assert "not known: the step raised DataDependentOutputException" in notes[0]


def test_the_gpt_of_the_samples_saves_what_was_measured() -> None:
    """12 layers, 8 x 1024 tokens: the bytes that PyTorch's own min cut saves, too."""
    settings = CaptureSettings()
    saved, _ = measure_eager(build(load_workload("sample_models/gpt.py", settings), settings, fake=True))
    assert saved is not None
    assert round(saved.saved_bytes / 2**20) == 6233


class Branching(nn.Module):
    """One of two branches, by the data: a higher-order op, which eager runs by compiling it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.linear(x).sin(), lambda x: self.linear(x).cos(), (x,)).sum()


@pytest.mark.parametrize("fake", [True, False])
def test_a_higher_order_op_saves_what_its_branches_are_given(fake: bool) -> None:
    for _ in range(2):  # nothing that Dynamo keeps of the first time spoils the second
        assert measure(Branching(), torch.ones(4, 8), fake=fake) == EagerSaved(0, (4 * 8 + 8 * 8 + 8) * 4, 0)


def test_a_model_with_a_higher_order_op_is_captured_twice_in_one_process() -> None:
    from aotcli.capture.trace import capture

    for _ in range(2):
        trace = capture(object_workload(Branching(), (torch.ones(4, 8),)), CaptureSettings(level="aten")).trace
        assert (trace.tensors, len(trace.regions), trace.notes) == ("fake", 1, ())
