"""The one departure from PyTorch's min cut, and why: an input that the step changes must not be read again.

If PyTorch's gradients turn out right here, its bug is fixed (pull requests 197039 and 185876): compare the fix with
aotcli/analysis/mincut_mutation.py then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from comparison import evidence_of
from torch import Tensor, nn

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.roles import classify
from aotcli.capture.trace import capture
from aotcli.capture.workload import object_workload
from aotcli.ir.trace import CaptureSettings
from aotcli.lowering.backend import compile_model

ROWS, WIDTH = 64, 8


class Decaying(nn.Module):
    """y = (x * w) * (buf * 2); buf *= 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.register_buffer("buf", torch.full((WIDTH,), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        y = (x * self.weight) * (self.buf * 2)
        self.buf.mul_(0.5)
        return y


class DecayingView(Decaying):
    """The same, read through a view."""

    def forward(self, x: Tensor) -> Tensor:
        y = (x * self.weight) * (self.buf.view(1, WIDTH) * 2).sin()
        self.buf.mul_(0.5)
        return y


def gradient(model: nn.Module, step: Any) -> Tensor:
    torch.manual_seed(0)
    step(torch.randn(ROWS, WIDTH)).sum().backward()
    assert isinstance(model.weight, nn.Parameter)
    found, model.weight.grad = model.weight.grad, None
    assert found is not None
    return found


def torch_min_cut(model: nn.Module) -> Any:
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def compiler(gm: Any, _: Any) -> Any:
        from functorch.compile import make_boxed_func

        return make_boxed_func(gm.forward)

    backend = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    return torch.compile(model, backend=backend)


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", [Decaying, DecayingView])
def test_gradients_are_eagers_where_pytorchs_are_wrong(kind: Callable[[], nn.Module]) -> None:
    eager, ours, theirs = kind(), kind(), kind()
    expected = gradient(eager, eager)
    torch.testing.assert_close(gradient(ours, compile_model(ours, strategy="mincut")), expected)
    wrong = gradient(theirs, torch_min_cut(theirs))
    assert not torch.allclose(wrong, expected, rtol=0.1)
    if kind is Decaying:
        torch.testing.assert_close(wrong, expected / 2)


@pytest.mark.parametrize("level", ["aten", "inductor"])
@pytest.mark.parametrize("kind", [Decaying, DecayingView])
def test_the_plan_saves_what_was_read_and_not_what_has_changed(kind: Callable[[], nn.Module], level: str) -> None:
    captured = capture(object_workload(kind(), (torch.randn(ROWS, WIDTH),)), CaptureSettings(level=level))
    (region,) = captured.regions
    (buf,) = region.graph.mutated
    evidence = evidence_of(region)
    assert evidence is not None
    assert buf in evidence.saved
    decision = decide(region.graph, Heuristic())
    saved = {name for name, _ in decision.saved}
    assert buf not in saved
    # The first op after the read, and every value that torch would compute from the changed buffer, is not recomputed.
    readers = {node.name for node in region.graph.nodes if decision.bans.get(node.name) == "mutated input"}
    assert readers & saved or any(readers.intersection(region.graph[name].refs) for name in saved)
    assert all(classify(region.graph).required_forward[region.graph.index[name]] for name in readers)
