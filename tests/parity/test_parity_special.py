"""Parity on what few models have: checkpointed blocks, policies, symbols from data, effects, kernels of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from comparison import compare
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.capture.trace import Capture, capture
from aotcli.capture.workload import object_workload
from aotcli.ir.trace import CaptureSettings

WIDTH = 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(F.layer_norm(x, (WIDTH,)))))


class Checkpointed(nn.Module):
    """Blocks that are checkpointed one after another, with nothing between them."""

    def __init__(self, context_fn: Callable[[], Any] | None = None, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.options = {"context_fn": context_fn} if context_fn is not None else {}
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(self.run, block, x, use_reentrant=False, **self.options)
        return x

    def run(self, block: nn.Module, x: Tensor) -> Tensor:
        return F.dropout(block(x), self.dropout)


def contexts(policy: Callable[[Any], CheckpointPolicy]) -> Callable[[], Any]:
    def choose(_: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return policy(op)

    return functools.partial(create_selective_checkpoint_contexts, choose)


def save_matmuls(op: Any) -> CheckpointPolicy:
    matmul = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return CheckpointPolicy.MUST_SAVE if matmul else CheckpointPolicy.PREFER_RECOMPUTE


def save_all(op: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE


def recompute_all(op: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_RECOMPUTE


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(2, 4, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(8, WIDTH))


class FromData(nn.Module):
    """Sizes that depend on data: how many rows are positive."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[x.sum(dim=1) > 0]
        once, twice = x.sum().item(), x.sum().item()
        return (chosen @ self.weight).sin() * once + twice


class ItemAsSize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        first, second = lengths.tolist()
        torch._check(first >= 0)
        torch._check(second >= 0)
        a = x.new_ones(first, WIDTH) @ self.weight
        b = x.new_ones(second, WIDTH) @ self.weight
        return torch.cat([a.exp(), b.sin()]).sum(dim=0) * first


@torch.library.custom_op("parity::scale_", mutates_args=("out",))
def scale_(x: Tensor, out: Tensor, by: float) -> None:
    out.copy_(x * by)


class OwnKernel(nn.Module):
    """A custom op that writes into an argument: functionalized by cloning it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        scale_(x, out, 3.0)
        return (out * self.weight).exp() * out.sin()


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return torch.cond(x.sum() > 0, lambda v: v.sin() @ v.t(), lambda v: v.cos() @ v.t(), (y,)).exp()


class Scan(nn.Module):
    """One weight read at every step, and a running state: values used far apart."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        state, gate = torch.zeros_like(x), x.sigmoid()
        for _ in range(12):
            state = (state * gate + x @ self.weight).tanh()
        return state * gate


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.AvgPool2d(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(self.layers(x.view(1, 1, 8, 16).repeat(2, 1, 2, 1)), scale_factor=2.0, mode="bilinear")


def rows() -> Tensor:
    return torch.randn(8, WIDTH)


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "checkpoint": (Checkpointed, (rows(),)),
    "checkpoint with dropout": (lambda: Checkpointed(dropout=0.3), (rows(),)),
    "policy matmuls": (lambda: Checkpointed(contexts(save_matmuls)), (rows(),)),
    "policy save all": (lambda: Checkpointed(contexts(save_all)), (rows(),)),
    "policy recompute all": (lambda: Checkpointed(contexts(recompute_all)), (rows(),)),
    "attention": (Attention, (rows(),)),
    "sizes from data": (FromData, (rows(),)),
    "items as sizes": (ItemAsSize, (rows(), torch.tensor([3, 5]))),
    "own kernel": (OwnKernel, (rows(),)),
    "branch": (Branch, (rows(),)),
    "scan": (Scan, (rows(),)),
    "convolutions": (Convolutions, (rows(),)),
}


def captured_case(name: str, level: str, *, dynamic: bool = False) -> Capture:
    make, inputs = CASES[name]
    settings = CaptureSettings(level=level, dynamic=dynamic)
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        return capture(object_workload(make(), inputs, name=name.replace(" ", "_")), settings)


@pytest.mark.parametrize("level", ["aten", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_a_special_model(name: str, level: str) -> None:
    torch._dynamo.reset()
    captured = captured_case(name, level)
    assert captured.regions
    for region in captured.regions:
        assert not region.graph.mutated
        compare(region)
        compare(region, Heuristic(aggressive=True), aggressive_recomputation=True)


@pytest.mark.parametrize("level", ["aten", "inductor"])
@pytest.mark.parametrize("name", ["checkpoint", "scan"])
def test_dynamic_shapes(name: str, level: str) -> None:
    for region in captured_case(name, level, dynamic=True).regions:
        assert region.graph.symbols
        compare(region)


@pytest.mark.parametrize("second_version", [False, True])
def test_both_ways_of_functionalizing_a_kernel(second_version: bool) -> None:
    with torch._inductor.config.patch(enable_auto_functionalized_v2=second_version):
        (region,) = captured_case("own kernel", "aten").regions
    target = "higher_order.auto_functionalized_v2" if second_version else "higher_order.auto_functionalized"
    assert target in {node.target for node in region.graph.nodes}
    compare(region)


def test_boundaries_between_checkpointed_blocks_are_saved() -> None:
    (region,) = captured_case("checkpoint", "aten").regions
    causes = [reason.text for _, reason in decide(region.graph, Heuristic()).saved if reason.rule == "must save"]
    assert causes == ["boundary of two checkpointed blocks"] * 2
