"""What a snapshot writes down about a joint graph, on graphs captured from small functions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from aotcli.capture.trace import capture
from aotcli.capture.workload import object_workload
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.tensor import SymbolSpec, TensorSpec
from aotcli.ir.trace import CaptureSettings, Trace


def trace(model: object, *inputs: object, level: str = "aten", loss: object = None, **settings: object) -> Trace:
    workload = object_workload(model, inputs, loss=loss)
    return capture(workload, CaptureSettings(level=level, **settings)).trace


def graph_of(model: object, *inputs: object, **settings: object) -> JointGraph:
    (graph,) = trace(model, *inputs, **settings).regions
    return graph


def op(graph: JointGraph, target: str) -> Node:
    found = [node for node in graph.nodes if node.target == target]
    assert found, f"{target} is not among {sorted({node.target for node in graph.nodes})}"
    return found[0]


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.scale


def test_placeholders_carry_role_and_name() -> None:
    graph = graph_of(Block(), torch.randn(4, 8))
    roles = {(node.kind, node.origin) for node in graph.placeholders}
    assert roles == {
        (NodeKind.PARAM, "inner.0.weight"),
        (NodeKind.PARAM, "inner.0.bias"),
        (NodeKind.BUFFER, "scale"),
        (NodeKind.INPUT, "x"),
        (NodeKind.TANGENT, None),
    }
    static = {graph[name].origin for name in graph.static_inputs}
    assert static == {"inner.0.weight", "inner.0.bias", "scale"}


@pytest.mark.parametrize("level", ["aten", "inductor"])
def test_forward_and_backward_ops_have_module_and_line(level: str) -> None:
    graph = graph_of(Block(), torch.randn(4, 8), level=level, loss=lambda out: out.pow(2).mean())
    mm = op(graph, "aten.addmm.default")
    assert (mm.module, mm.module_type) == ("inner.0", "Linear")
    assert mm.source is not None
    assert mm.source.endswith(f"{Path(__file__).name}:{Block.forward.__code__.co_firstlineno + 1}")
    loss = op(graph, "aten.pow.Tensor_Scalar")
    assert loss.module == "(loss)"
    backward = [n for n in graph.nodes if n.partitioner_tag == "is_backward" and n.kind is NodeKind.OP]
    assert backward
    assert all(n.source for n in backward)
    assert {"inner.0", "inner.1", "", "(loss)"} <= {n.module for n in backward}


def test_views_share_a_storage_and_say_so() -> None:
    graph = graph_of(lambda x, w: (x.t() @ w).sin(), torch.randn(4, 8, requires_grad=True), torch.randn(4, 2))
    view, base = op(graph, "aten.t.default"), graph.placeholders[0]
    assert isinstance(view.value, TensorSpec)
    assert isinstance(base.value, TensorSpec)
    assert view.value.storage == base.value.storage
    assert view.value.nbytes == 4 * 8 * 4
    assert {Tag.VIEW, Tag.VIEW_SCHEMA} <= view.tags


def test_expand_keeps_its_true_storage_size() -> None:
    graph = graph_of(lambda x: x.expand(64, 8).sin().sum(), torch.randn(1, 8, requires_grad=True))
    expand = op(graph, "aten.expand.default")
    assert isinstance(expand.value, TensorSpec)
    assert (expand.value.nbytes, expand.value.storage_nbytes) == (64 * 8 * 4, 8 * 4)


def test_dropout_is_random_and_attention_without_dropout_is_not() -> None:
    graph = graph_of(lambda x: nn.functional.dropout(x, 0.5), torch.randn(4, 8, requires_grad=True))
    assert Tag.RANDOM in op(graph, "aten.native_dropout.default").tags

    def attend(q: torch.Tensor, p: float) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=p)

    query = torch.randn(1, 2, 16, 8, requires_grad=True)
    plain = graph_of(lambda q: attend(q, 0.0), query)
    attention = next(n for n in plain.nodes if "scaled_dot_product" in n.target)
    assert Tag.RANDOM not in attention.tags


def test_mutated_buffers_are_named() -> None:
    seen = trace(nn.BatchNorm1d(4), torch.randn(8, 4))
    assert set(seen.mutations) == {"buffer running_mean", "buffer running_var", "buffer num_batches_tracked"}


def test_symbols_are_named_by_their_source_alone() -> None:
    first = graph_of(Block(), torch.randn(4, 8), dynamic=True)
    second = graph_of(Block(), torch.randn(4, 8), dynamic=True)
    assert first == second
    bound = [n for n in first.nodes if n.binds is not None]
    assert bound
    assert all(isinstance(n.value, SymbolSpec) and n.value.hint in (4, 8) for n in bound)
    assert {n.binds for n in bound} <= first.symbol_names


def test_flops_of_products_and_of_attention_are_counted() -> None:
    graph = graph_of(lambda x, w: x @ w, torch.randn(4, 8, requires_grad=True), torch.randn(8, 16))
    assert op(graph, "aten.mm.default").flops == 2 * 4 * 8 * 16
    query = torch.randn(1, 2, 16, 8, requires_grad=True)
    attention = graph_of(lambda q: nn.functional.scaled_dot_product_attention(q, q, q), query)
    forward = next(n for n in attention.nodes if "scaled_dot_product" in n.target and "backward" not in n.target)
    assert forward.flops == 2 * (2 * 16 * 16 * 8) * 2


def test_a_step_without_gradient_is_one_forward_region() -> None:
    graph = graph_of(lambda x: x.sin(), torch.randn(4))
    assert not graph.has_backward
    assert graph.num_forward_outputs == 1


def test_nested_graphs_are_nested_records() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    graph = graph_of(branch, torch.randn(4))
    assert len(graph.subgraphs) == 2
    targets = {node.target for _, nested in graph.subgraphs for node in nested.nodes}
    assert {"aten.sin.default", "aten.cos.default"} <= targets


def test_a_graph_break_gives_regions_and_a_reason_without_addresses() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    seen = trace(broken, torch.randn(4, requires_grad=True))
    assert len(seen.regions) == 2
    (cut,) = seen.breaks
    assert "graph_break" in cut.reason
    assert "0x" not in cut.reason
    assert cut.source is not None
    assert cut.source.startswith("tests/test_snapshot.py:")


def test_the_same_capture_twice_is_equal() -> None:
    one = trace(Block(), torch.randn(4, 8), level="inductor")
    two = trace(Block(), torch.randn(4, 8), level="inductor")
    assert one == two


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).tanh()
        torch._dynamo.graph_break()
        return self.second(y).sigmoid()


def test_ops_of_a_module_cut_by_a_graph_break_are_not_taken_for_the_loss() -> None:
    outer = nn.Sequential(Broken(), nn.Linear(4, 4))
    seen = trace(outer, torch.randn(2, 4), loss=lambda out: out.pow(2).mean())
    owners = {node.target: node.module for region in seen.regions for node in region.nodes if node.module is not None}
    assert owners["aten.tanh.default"] == "0"
    assert owners["aten.sigmoid.default"] == "0"
    assert owners["aten.pow.Tensor_Scalar"] == "(loss)"


def test_a_break_in_a_loop_is_told_though_no_graph_ends_there() -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
                torch._dynamo.graph_break()
            return x

    for _ in range(2):  # Dynamo counts over the whole process
        workload = object_workload(Layers(), (torch.ones(2, 4),), loss=torch.sum)
        trace = capture(workload, CaptureSettings(level="aten")).trace
        (told,) = trace.breaks
        assert "all of forward runs uncompiled" in told.reason
        assert told.source is not None
        assert told.source.startswith("tests/test_snapshot.py:")
        assert "part of the step is in no region: 6 of 6 parameters are read by none" in trace.notes
