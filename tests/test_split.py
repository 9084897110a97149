"""Splitting captured graphs of small functions: what is hard for a partitioner, against PyTorch's own passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from halves import assert_same, assert_same_but_for_replay, assert_same_modules, by_place, of_module
from torch_oracle import extract

from aotcli.analysis.assemble import assemble, decision_of
from aotcli.analysis.cut import cut
from aotcli.errors import StrategyError
from aotcli.ir.joint import Tag
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.trace import CaptureSettings
from aotcli.lowering.split import split
from aotcli.strategies import load_strategy, strategy_class, strategy_names

torch = pytest.importorskip("torch")
nn = torch.nn
NAMES = tuple(name for name in strategy_names() if strategy_class(name).argument is None)
checkpoint = torch.utils.checkpoint.checkpoint


def regions(model: Any, *inputs: Any, **settings: Any) -> tuple[Any, ...]:
    from aotcli.capture.trace import capture
    from aotcli.capture.workload import object_workload

    return capture(object_workload(model, inputs), CaptureSettings(**{"level": "aten", **settings})).regions


def leaf(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


def hooked(x: Any) -> Any:
    y = x.sin()
    y.register_hook(lambda gradient: gradient * 2)
    return y.cos().sum()


class CountsInBackward(torch.autograd.Function):
    """Changes a buffer in its backward, and keeps a tensor without a version check."""

    @staticmethod
    def forward(ctx: Any, x: Any, seen: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.seen = seen
        ctx.loose = x.cos()
        return x.sin()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        ctx.seen.add_(gradient.sum())
        return gradient * ctx.loose + x, None


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return CountsInBackward.apply(self.fc(x), self.seen).sum()


@torch.compiler.nested_compile_region
def block(x: Any, w: Any) -> Any:
    return torch.sin(x @ w) * x


CASES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a hook on an activation": lambda: (hooked, leaf(4, 8)),
    "a buffer that the backward changes": lambda: (Counting(), torch.randn(4, 8)),
    "branches": lambda: (
        lambda x, w: torch.cond(x.sum() > 0, lambda a, b: (a @ b).sin(), lambda a, b: (a @ b).cos(), (x, w)).sum(),
        leaf(4, 8),
        leaf(8, 8),
    ),
    "a region used twice": lambda: (lambda x, w: block(block(x, w), w).sum(), leaf(8, 8), leaf(8, 8)),
    "a size among the outputs": lambda: (lambda x: (x.sin(), x.shape[0] * 2), leaf(4, 8)),
    "a tuple of which one part is read": lambda: (lambda x: x.topk(3)[0].sum(), leaf(4, 8)),
    "an output without gradient": lambda: (
        lambda x, w: ((x @ w).sin().detach(), (x * 2).cos().sum()),
        leaf(4, 8),
        leaf(8, 8),
    ),
}
# Dynamo cannot trace a branch on the sum of a tensor whose shape is symbolic.
DYNAMIC = [case for case in CASES if case != "branches"]


@pytest.mark.parametrize(("case", "dynamic"), [*((case, False) for case in CASES), *((case, True) for case in DYNAMIC)])
def test_modules_are_those_of_torchs_passes(case: str, dynamic: bool) -> None:
    for region in regions(*CASES[case](), dynamic=dynamic):
        for name in NAMES:
            partition = load_strategy(name).plan(region.graph, region)
            halves = cut(region.graph, decision_of(partition))
            forward, backward = split(region, partition)
            assert_same(halves.forward, forward, region.graph, f"{name} forward")
            assert_same(halves.backward, backward, region.graph, f"{name} backward")
            theirs = extract(region, partition)
            assert_same_modules(forward, theirs[0], f"{name} forward")
            assert_same_modules(backward, theirs[1], f"{name} backward")


def test_outputs_are_described_as_the_runtime_wants() -> None:
    (region,) = regions(Counting(), torch.randn(4, 8))
    partition = load_strategy("save-all").plan(region.graph, region)
    (ours, ours_back), (theirs, theirs_back) = split(region, partition), extract(region, partition)
    assert any(Tag.NO_VERSION_CHECK in region.graph[value.name].tags for value in partition.saved)
    for left, right in ((ours, theirs), (ours_back, theirs_back)):
        (mine,), (other,) = left.graph.find_nodes(op="output"), right.graph.find_nodes(op="output")
        assert list(mine.meta["desc"]) == list(other.meta["desc"])
        assert mine.meta["output_stack_traces"] == other.meta["output_stack_traces"]


def test_the_captured_graph_is_left_as_it_was() -> None:
    (region,) = regions(Checkpointed(), torch.randn(4, 8))
    before = of_module(region.gm), [dict(node.meta) for node in region.gm.graph.nodes]
    for name in NAMES:
        split(region, load_strategy(name).plan(region.graph, region))
    assert before == (of_module(region.gm), [dict(node.meta) for node in region.gm.graph.nodes])


# Random ops that run in both halves.


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(8, 8), nn.Linear(8, 8)

    def block(self, x: Any) -> Any:
        return nn.functional.dropout(torch.relu(self.fc(x)), 0.5)

    def forward(self, x: Any) -> Any:
        return self.out(checkpoint(self.block, x, use_reentrant=False)).sum()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", ["torch-default", "torch-mincut"])
def test_replay_is_built_as_torch_builds_it(name: str, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from aotcli.capture import reference

    returned: list[Any] = []
    run = reference.run_partition_function
    monkeypatch.setattr(reference, "run_partition_function", lambda *args: returned.append(run(*args)) or returned[-1])
    (region,) = regions(Checkpointed(), torch.randn(4, 8), dynamic=dynamic)
    partition = load_strategy(name).plan(region.graph, region)
    assert partition.notes == ("1 random op is replayed in the backward from a saved random state (not counted)",)
    forward, backward = split(region, partition)
    for ours, theirs in ((forward, returned[0].forward), (backward, returned[0].backward)):
        assert by_place(*of_module(ours)) == by_place(*of_module(theirs))
    halves = cut(region.graph, decision_of(partition))
    assert_same_but_for_replay(halves.forward, forward, "forward")
    assert_same_but_for_replay(halves.backward, backward, "backward")
    (state,) = [node for node in backward.graph.find_nodes(op="placeholder") if node.name.startswith("rng_state")]
    assert list(state.meta["val"].shape) == [torch.get_rng_state().numel()]


def test_any_recomputed_random_op_is_replayed_not_only_tagged_ones() -> None:
    (region,) = regions(lambda x: nn.functional.dropout(x.sin(), 0.5).cos().sum(), leaf(4, 8))
    primals = [node.name for node in region.graph.placeholders if not node.name.startswith("tangents")]
    decision = Decision(saved=tuple((name, Reason("test", "test")) for name in primals))
    partition = assemble(region.graph, decision, strategy="test")
    assert any(Tag.RANDOM in region.graph[name].tags for name in partition.recomputed)
    forward, backward = split(region, partition)
    x = leaf(4, 8)
    loss, *saved = forward(x)
    torch.randn(100)  # the generator moves on between forward and backward
    (gradient,) = backward(*saved, torch.ones(()))
    kept = (gradient != 0) | (x.sin().abs() < 1e-6)
    again = torch.where(kept, 2 * x.sin(), 0.0)
    assert torch.allclose(again.cos().sum(), loss), "the backward drew another mask than the forward"


# Refusals.


def test_a_plan_for_another_graph_is_refused() -> None:
    (one,) = regions(lambda x: x.sin().sum(), leaf(4, 8))
    (other,) = regions(lambda x: x.cos().sum(), leaf(4, 8))
    partition = load_strategy("save-all").plan(one.graph, one)
    with pytest.raises(StrategyError, match="another graph"):
        split(other, partition)


def test_a_region_without_backward_is_not_split() -> None:
    (region,) = regions(lambda x: x.sin(), torch.randn(4))
    with pytest.raises(StrategyError, match="no backward"):
        split(region, load_strategy("save-all").plan(region.graph, region))


# Partition functions from elsewhere.


def plan_by(function: Any, region: Any) -> Partition:
    from aotcli.strategies._partition_fn import PartitionFunction

    return PartitionFunction(function=function, label="mine.py:split").plan(region.graph, region)


def test_a_users_partition_function_is_read_as_a_plan() -> None:
    from functorch.compile import default_partition

    (region,) = regions(lambda x, w: (x @ w).sin().sum(), leaf(4, 8), leaf(8, 8))
    partition = plan_by(default_partition, region)
    assert partition.strategy == "mine.py:split"
    assert {value.reason.rule for value in partition.saved} == {"partition function"}
    assert len(split(region, partition)) == 2


def test_a_partition_function_that_fails_or_returns_no_modules_says_so() -> None:
    def fails(gm: Any, joint_inputs: Any, **rest: Any) -> Any:
        raise RuntimeError("no idea\nmore")

    (region,) = regions(lambda x: x.sin().sum(), leaf(4, 8))
    with pytest.raises(StrategyError, match=r"mine.py:split failed on region0") as caught:
        plan_by(fails, region)
    assert caught.value.why == "RuntimeError: no idea"
    with pytest.raises(StrategyError, match="returned no pair of graph modules"):
        plan_by(lambda gm, joint_inputs, **rest: gm, region)


def test_a_partition_function_that_adds_nodes_is_refused() -> None:
    from functorch.compile import default_partition

    def adds(gm: Any, joint_inputs: Any, **rest: Any) -> Any:
        forward, backward = default_partition(gm, joint_inputs, **rest)
        with backward.graph.inserting_before(next(iter(backward.graph.nodes))):
            backward.graph.placeholder("offloaded")
        return forward, backward

    (region,) = regions(lambda x: x.sin().sum(), leaf(4, 8))
    with pytest.raises(StrategyError, match="offloaded, which the joint graph does not have"):
        plan_by(adds, region)


def test_references_say_where_torch_is_wrong() -> None:
    class Changing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8))
            self.register_buffer("scale", torch.ones(8))

        def forward(self, x: Any) -> Any:
            y = (x * self.weight) * (self.scale * 2)
            self.scale.mul_(0.5)
            return y.sum()

    (region,) = regions(Changing(), torch.randn(4, 8))
    (note,) = load_strategy("torch-mincut").plan(region.graph, region).notes
    assert note.startswith("wrong gradients: ")
    assert note.endswith("after the step has changed what it reads (scale)")
    (region,) = regions(lambda x: nn.functional.dropout(x.sin(), 0.5).cos().sum(), leaf(4, 8))
    assert load_strategy("torch-mincut").plan(region.graph, region).notes == ()
    (note,) = load_strategy("torch-mincut", {"budget": "0"}).plan(region.graph, region).notes
    assert note == "wrong gradients: random ops run again in the backward and draw other numbers there (native_dropout)"
