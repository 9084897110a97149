"""Lint on real captures: what it finds in the sample models, whether its claims and remedies hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import LEVELS, SAMPLES, SMALL, capture_sample
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy

from aotcli import api
from aotcli.analysis.lint.shape_only import UNREAD_ARGUMENTS, unread
from aotcli.analysis.owners import with_owners
from aotcli.api.lint import LintResult, lint
from aotcli.ir.joint import Node, NodeKind, Ref
from aotcli.ir.trace import Trace

# What there is in the samples, all of it looked at: values that norms, activations, embeddings and masks would make
# again from what is there, and inputs of max pooling that are kept for their shape. A sample that is not named has
# nothing to find.
CHEAP = {
    ("attention", "inductor"): {"(model) bitwise not"},  # the causal mask, made of sizes
    ("batchnorm", "inductor"): {"2 relu"},
    ("dropout", "inductor"): {"*.inner mul"},  # sin times a dropout mask, which is saved
    ("dynamic_shapes", "aten"): {"embed embedding"},
    ("dynamic_shapes", "inductor"): {"embed embedding"},
    ("function", "aten"): {"(model) sigmoid"},
    ("gpt", "aten"): {"h.* gelu", "ln1 ln2 f layer norm", "(model) add", "(model) arange"},
    ("gpt", "inductor"): {"h.* mul", "ln1 ln2 f add", "h.0.ln1 mul", "(model) iota"},
    ("mlp", "aten"): {"act gelu"},
    ("mlp", "inductor"): {"act mul"},
    ("tied_weights", "aten"): {"embed embedding", "(loss) zeros"},
    ("tied_weights", "inductor"): {"embed embedding"},
    ("unet", "aten"): {"down.*.* group norm", "down.*.* up.*.* group norm", "down.*.* silu", "down.*.* up.*.* silu"},
    ("unet", "inductor"): {"down.*.* div", "down.*.* up.*.* div"},
}
UNREAD = {("unet", "aten"): {f"down.{n}.5 silu" for n in range(3)}}
# The ResNet takes half a minute to capture and has nothing that the other convolutional ones do not have.
NAMES = [name for name in SAMPLES if name != "resnet"]
BROKEN = {("graph_break", level) for level in LEVELS}


@cache
def sample(name: str, level: str) -> Trace:
    trace: Trace = capture_sample(name, level).trace
    return dataclasses.replace(trace, regions=tuple(with_owners(graph) for graph in trace.regions))


@cache
def linted(name: str, level: str) -> LintResult:
    return lint(sample(name, level), min_bytes=0)


def of_rule(result: LintResult, code: str) -> set[str]:
    return {f"{each.module} {each.what}".strip() for each in result.findings if each.rule == code}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NAMES)
class TestSamples:
    def test_what_is_found(self, name: str, level: str) -> None:
        result = linted(name, level)
        assert of_rule(result, "AOT002") == CHEAP.get((name, level), set())
        assert of_rule(result, "AOT005") == UNREAD.get((name, level), set())
        assert ("AOT007" in {each.rule for each in result.findings}) is ((name, level) in BROKEN)
        assert {each.rule for each in result.findings} <= {"AOT002", "AOT005", "AOT007"}

    def test_what_is_at_stake_is_what_computing_again_frees(self, name: str, level: str) -> None:
        """The plan under the policy of all findings saves less by at least what they claim, and repeats no product."""
        result = linted(name, level)
        claimed = sum(each.nbytes for each in result.findings if each.rules)
        assert all(each.rules for each in result.findings if each.rule == "AOT002")
        plan = result.report.policy
        if plan is None:
            assert claimed == 0
            return
        assert result.report.saved_bytes is not None
        assert result.report.saved_bytes - plan.saved_bytes >= claimed > 0
        assert plan.recompute_flops == api.partition(sample(name, level), alternatives=False).plan.recompute_flops


class TestAutocast:
    def traced(self, name: str, level: str, **options: Any) -> Trace:
        overrides = SMALL.get(name, ())
        return api.trace(f"sample_models/{name}.py", level=level, overrides=overrides, cache=False, **options)

    def test_casts_of_weights_are_found_and_the_remedies_hold(
        self, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        monkeypatch.chdir(request.config.rootpath)
        trace = self.traced("gpt", "inductor", autocast="bfloat16")
        found = lint(trace, min_bytes=0)
        copies = [each for each in found.findings if each.rule == "AOT003"]
        # Four linear layers in each of two blocks, and the head.
        assert sum(each.count for each in copies) == 9
        assert {each.dtype for each in copies} == {"bfloat16"}
        held = self.traced("gpt", "inductor", dtype="bfloat16")
        for again in (lint(held, min_bytes=0), lint(trace, strategy="mincut:aggressive", min_bytes=0)):
            assert not [each for each in again.findings if each.rule == "AOT003"]

    def test_an_input_that_is_cast_is_no_parameter(
        self, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        monkeypatch.chdir(request.config.rootpath)
        found = lint(self.traced("mlp", "aten", autocast="bfloat16"), min_bytes=0)
        assert {(each.rule, each.module) for each in found.findings} == {("AOT002", "act"), ("AOT003", "proj")}


class Router(nn.Module):
    """A product in fp32 of a bfloat16 value, as routers of experts have it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16, dtype=torch.bfloat16)
        self.gate = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.fc(x).float())


class Twice(nn.Module):
    """Attention weights beside their copy."""

    def __init__(self, p: float | None) -> None:
        super().__init__()
        self.q, self.p = nn.Linear(16, 16), p

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.q(x) @ x.mT).softmax(-1)
        return (weights if self.p is None else F.dropout(weights, self.p)) @ self.q(x)


class AveragePool(torch.autograd.Function):
    """The remedy of AOT005: the shape is kept, and any tensor of that shape is handed to the backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return F.avg_pool2d(x, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x = grad.new_empty(()).expand(ctx.shape)
        return torch.ops.aten.avg_pool2d_backward(grad, x, [2, 2], [2, 2], [0, 0], False, True, None)


class FrozenConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.shape = x.shape
        ctx.save_for_backward(weight)
        return F.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return torch.nn.grad.conv2d_input(ctx.shape, weight, grad, 1, 1), None


class Pooled(nn.Module):
    """A convolution, a frozen one, a pooling; with `remedy`, the last two keep shapes."""

    def __init__(self, remedy: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.frozen = nn.Conv2d(4, 4, 3, padding=1, bias=False).requires_grad_(False)
        self.remedy = remedy

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.remedy:
            return AveragePool.apply(FrozenConvolution.apply(x, self.frozen.weight))
        return F.avg_pool2d(self.frozen(x), 2)


def square(output: Tensor) -> Tensor:
    return output.float().square().mean()


def lint_model(model: nn.Module, *inputs: Tensor, **options: Any) -> LintResult:
    return lint(model, inputs, loss=square, min_bytes=0, **options)


class TestRemedies:
    @pytest.mark.parametrize("level", LEVELS)
    def test_an_fp32_copy(self, level: str) -> None:
        result = lint_model(Router(), torch.ones(8, 16, dtype=torch.bfloat16), level=level)
        (finding,) = [each for each in result.findings if each.rule == "AOT004"]
        assert finding.detail == "cast up from bf16 addmm of fc, which would do"
        assert finding.nbytes == 8 * 16 * 2
        assert finding.rules

    def test_weights_saved_beside_their_copy(self) -> None:
        x = torch.ones(2, 8, 16)
        found = lint_model(Twice(0.0), x, level="aten").findings
        assert [(each.what, each.nbytes) for each in found if each.rule == "AOT006"] == [("clone", 2 * 8 * 8 * 4)]
        for p in (None, 0.5):
            assert "AOT006" not in {each.rule for each in lint_model(Twice(p), x, level="aten").findings}

    @pytest.mark.parametrize("level", LEVELS)
    def test_shapes_instead_of_values(self, level: str) -> None:
        x = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
        found = lint_model(Pooled(False), x, level=level).findings
        assert {each.detail.partition(" reads")[0] for each in found if each.rule == "AOT005"} == {
            "convolution backward of frozen",
            "avg pool2d backward",
        }
        assert "AOT005" not in {each.rule for each in lint_model(Pooled(True), x, level=level).findings}

    def test_the_remedies_compute_the_same_gradients(self) -> None:
        x = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
        gradients = []
        for remedy in (False, True):
            model = Pooled(remedy)
            square(model(x)).backward()
            gradients.append(model.conv.weight.grad)
        assert torch.equal(*gradients)

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_class_token_that_keeps_all_tokens(self, level: str) -> None:
        def found(copied: bool) -> LintResult:
            return lint_model(FirstToken(copied), torch.ones(2, 50, 8), level=level)

        (finding,) = [each for each in found(False).findings if each.rule == "AOT008"]
        assert finding.nbytes == 2 * 49 * 8 * 4
        assert "AOT008" not in {each.rule for each in found(True).findings}
        assert found(False).report.saved_bytes - found(True).report.saved_bytes == finding.nbytes  # type: ignore[operator]

    def test_a_graph_break_in_every_layer(self) -> None:
        def blocks(broken: bool) -> nn.Module:
            return nn.Sequential(*(Block(broken) for _ in range(3)))

        found = lint_model(blocks(True), torch.ones(2, 4)).findings
        (finding,) = [each for each in found if each.rule == "AOT007"]
        assert "torch._dynamo.graph_break" in finding.remedy.text
        assert (finding.source or "").rpartition(":")[0].endswith("test_lint_models.py")
        assert "AOT007" not in {each.rule for each in lint_model(blocks(False), torch.ones(2, 4)).findings}


class FirstToken(nn.Module):
    def __init__(self, copied: bool) -> None:
        super().__init__()
        self.body, self.head, self.copied = nn.Linear(8, 8), nn.Linear(8, 8), copied

    def forward(self, x: Tensor) -> Tensor:
        first = self.body(x)[:, 0]
        return self.head(first.clone() if self.copied else first)


class Block(nn.Module):
    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.fc, self.broken = nn.Linear(4, 4), broken

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x).relu()
        if self.broken:
            torch._dynamo.graph_break()
        return x


class TopK(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        values, _ = torch.topk(self.fc(x), 4)
        return values.exp().sin()


def tag(parts: CheckpointPolicy) -> Callable[[Any], None]:
    """A pass over the joint graph, as a user may give one to Inductor."""

    def annotate(graph: Any) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.topk.default:
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
                for part in node.users:
                    part.meta["recompute"] = parts

    return annotate


class TestImpossibleAnnotations:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the picture that PyTorch draws, and writes here
    def test_where_pytorch_blames_itself_both_lines_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from torch._inductor import config

        monkeypatch.chdir(tmp_path)
        with config.patch(joint_custom_pre_pass=tag(CheckpointPolicy.MUST_RECOMPUTE)):
            with pytest.raises(Exception, match="This is a bug in PyTorch"):
                torch.compile(TopK())(torch.ones(8, 16)).sum().backward()
            result = lint_model(TopK(), torch.ones(8, 16), level="inductor")
        (finding,) = result.findings
        assert finding.rule == "AOT001"
        assert [place.what for place in finding.places] == ["MUST_SAVE on topk", "MUST_RECOMPUTE on topk [0]"]
        assert all(place.source is not None and "test_lint_models.py:" in place.source for place in finding.places)
        assert finding.remedy.lines == ('node.meta["recompute"] = CheckpointPolicy.MUST_SAVE  # topk [0]',)

    def test_the_remedy_holds(self) -> None:
        from torch._inductor import config

        with config.patch(joint_custom_pre_pass=tag(CheckpointPolicy.MUST_SAVE)):
            result = lint_model(TopK(), torch.ones(8, 16), level="inductor")
        assert "AOT001" not in {each.rule for each in result.findings}


class TestUnreadArguments:
    """Each entry of the table: the op gives the same with that argument full of NaN."""

    IMAGE, GRAD = (2, 3, 8, 8), (2, 3, 4, 4)

    def calls(self) -> dict[str, tuple[Any, ...]]:
        torch.manual_seed(0)
        x, grad = torch.randn(self.IMAGE), torch.randn(self.GRAD)
        x3, grad3 = torch.randn(2, 3, 4, 8, 8), torch.randn(2, 3, 2, 4, 4)
        _, at = F.max_pool2d(x, 2, return_indices=True)
        _, at3 = F.max_pool3d(x3, 2, return_indices=True)
        pool, pool3 = ([2, 2], [2, 2], [0, 0]), ([2, 2, 2], [2, 2, 2], [0, 0, 0])
        logs, target = torch.randn(5, 7), torch.randint(7, (5,))
        weight, total = torch.ones(7), torch.tensor(5.0)
        logs2, target2 = torch.randn(2, 7, 3, 3), torch.randint(7, (2, 3, 3))
        calls: dict[str, tuple[Any, ...]] = {
            "aten.max_pool2d_with_indices_backward": (grad, x, *pool, [1, 1], False, at),
            "aten.max_pool3d_with_indices_backward": (grad3, x3, *pool3, [1, 1, 1], False, at3),
            "aten.avg_pool2d_backward": (grad, x, *pool, False, True, None),
            "aten.avg_pool3d_backward": (grad3, x3, *pool3, False, True, None),
            "aten._adaptive_avg_pool2d_backward": (grad, x),
            "aten._adaptive_avg_pool3d_backward": (grad3, x3),
            "aten.adaptive_max_pool2d_backward": (grad, x, at),
            "aten.adaptive_max_pool3d_backward": (grad3, x3, at3),
            "aten.nll_loss_backward": (torch.tensor(1.0), logs, target, weight, 1, -100, total),
            "aten.nll_loss2d_backward": (torch.tensor(1.0), logs2, target2, weight, 1, -100, torch.tensor(18.0)),
        }
        for kind in ("reflection", "replication"):
            for n in (1, 2, 3):
                shape = (2, 3, *([4] * n))
                padded = (2, 3, *([6] * n))
                calls[f"aten.{kind}_pad{n}d_backward"] = (torch.randn(padded), torch.randn(shape), [1, 1] * n)
        for op in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
            calls[f"aten.{op}"] = (x,)
        calls["aten.full_like"] = (x, 2.0)
        for op in ("new_zeros", "new_ones", "new_empty"):
            calls[f"aten.{op}"] = (x, [4, 4])
        calls |= {"aten.new_full": (x, [4, 4], 2.0), "aten.new_empty_strided": (x, [4, 4], [4, 1])}
        calls |= {f"aten.sym_{what}": (x, 0) for what in ("size", "stride")}
        return calls | {f"aten.sym_{what}": (x,) for what in ("numel", "storage_offset")}

    def run(self, packet: str, arguments: tuple[Any, ...]) -> Any:
        torch.manual_seed(1)
        result = getattr(torch.ops.aten, packet.removeprefix("aten."))(*arguments)
        return result.shape if "empty" in packet else result

    @pytest.mark.parametrize("packet", UNREAD_ARGUMENTS)
    def test_the_argument_is_not_read(self, packet: str) -> None:
        position = UNREAD_ARGUMENTS[packet]
        arguments = self.calls()[packet]
        spoiled = tuple(torch.full_like(a, float("nan")) if i == position else a for i, a in enumerate(arguments))
        expected, found = self.run(packet, arguments), self.run(packet, spoiled)
        assert torch.equal(expected, found) if isinstance(expected, Tensor) else expected == found

    def test_the_test_sees_an_argument_that_is_read(self) -> None:
        grad, x = torch.ones(4), torch.ones(4)
        expected = self.run("aten.gelu_backward", (grad, x))
        assert not torch.equal(expected, self.run("aten.gelu_backward", (grad, x * float("nan"))))

    @pytest.mark.parametrize("mask", [[True, True, False], [True, False, False], [False, True, False]], ids=str)
    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_a_convolution_reads_what_its_mask_needs(self, position: int, mask: list[bool]) -> None:
        torch.manual_seed(0)
        tensors = [torch.randn(2, 4, 8, 8), torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)]
        rest = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)
        expected = torch.ops.aten.convolution_backward(*tensors, *rest)
        tensors[position] = torch.full_like(tensors[position], float("nan"))
        found = torch.ops.aten.convolution_backward(*tensors, *rest)
        same = all(torch.equal(a, b) for a, b in zip(expected, found, strict=True) if a is not None)
        args = (Ref("grad"), Ref("x"), Ref("w"), None, *((0,) * 6), tuple(mask))
        node = Node("c", NodeKind.OP, "aten.convolution_backward.default", args)
        assert unread(node, position) is same
