"""Inductor's own seeds, without code generation: every strategy draws, and hands back, what `save-all` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from steps import Outcome, run_step

torch = pytest.importorskip("torch")
F = torch.nn.functional

from aotcli.capture.torch_private_validate import uncached  # noqa: E402
from aotcli.ir.joint import Tag  # noqa: E402
from aotcli.strategies import load_strategy  # noqa: E402
from aotcli.validation.observer import Observer  # noqa: E402
from aotcli.validation.unfused import Unfused  # noqa: E402

WIDTH = 64


class Drawing(torch.nn.Module):
    """Masks and noise between matrix products; a buffer that the step changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("scale", torch.full((WIDTH,), 2.0))

    def forward(self, x: Any) -> Any:
        hidden = F.dropout(self.first(x).tanh(), 0.5) * (self.scale * 3)
        self.scale.mul_(0.5)
        hidden = F.dropout(self.second(hidden).sin(), 0.2) * (1 + torch.rand_like(hidden))
        return hidden.square().mean()


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def step_under(strategy: str, options: dict[str, Any], seed: int = 1) -> tuple[Outcome, Observer]:
    torch.manual_seed(0)
    module, x = Drawing(), torch.randn(16, WIDTH, requires_grad=True)
    observer = Observer(load_strategy(strategy, options))
    with uncached(eager_random=False):
        found = run_step(module, (x,), {}, lambda m: torch.compile(m, backend=Unfused(observer)), seed)
    return found, observer


@pytest.mark.parametrize(("strategy", "options"), [("mincut", {"aggressive": True}), ("recompute-all", {})])
def test_numbers_of_seeds_that_are_kept_are_drawn_again_bit_by_bit(strategy: str, options: dict[str, Any]) -> None:
    kept, _ = step_under("save-all", {})
    found, observer = step_under(strategy, options)
    assert not kept.differences(found)
    (region,) = observer.regions
    redrawn = [name for name in region.partition.recomputed if "inductor_random" in region.live.graph[name].target]
    assert redrawn, "nothing was drawn twice: the test says nothing"
    assert not any(Tag.RANDOM in region.live.graph[name].tags for name in region.partition.recomputed)


def test_another_seed_gives_other_numbers_and_the_same_one_the_same() -> None:
    first, again, other = (step_under("save-all", {}, seed)[0] for seed in (1, 1, 2))
    assert not first.differences(again)
    assert any(name.startswith("gradient") for name in first.differences(other))


def test_seeds_that_are_drawn_again_are_found() -> None:
    """PyTorch's budget recomputes the seeds themselves, if the installed one still does."""
    kept, _ = step_under("save-all", {})
    theirs, observer = step_under("torch-mincut", {"budget": 0.1})
    (region,) = observer.regions
    nodes = region.backward.graph.find_nodes(op="call_function", target=torch.ops.prims.inductor_seeds.default)
    assert bool(nodes) == bool(kept.differences(theirs))
