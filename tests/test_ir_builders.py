from __future__ import annotations

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls

from aotcli.ir.joint import NodeKind


def test_placeholders_come_first_and_backward_ops_are_marked():
    graph = two_matmuls()
    kinds = [node.kind for node in graph.nodes]
    assert kinds[:4] == [NodeKind.PARAM, NodeKind.PARAM, NodeKind.INPUT, NodeKind.TANGENT]
    assert kinds[-1] is NodeKind.OUTPUT
    backward = [n.name for n in graph.nodes if n.partitioner_tag == "is_backward"]
    assert backward == ["t", "mm_2", "t_1", "mm_3", "threshold_backward", "t_2", "mm_4"]
    assert graph.static_inputs == ("primals_1", "primals_2")
    assert graph.forward_outputs == graph.outputs[:1]
    assert len(graph.backward_outputs) == 3


def test_views_share_the_storage_of_their_base():
    g = GraphBuilder()
    x = g.input("x", (2, 4))
    v = g.view(x, (4, 2))
    graph = g.build([v])
    assert graph[v.name].value.storage == graph[x.name].value.storage
    assert not graph.has_backward


def test_symbols_have_hints():
    g = GraphBuilder()
    s = g.symint("s0", hint=3)
    x = g.input("x", ("s0", 4))
    graph = g.build([g.pointwise("aten.exp.default", x), s])
    assert graph["exp"].value.hint == (3, 4)
    assert graph["exp"].value.nbytes == 48
    assert graph.symbol_names == {"s0"}


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_topological_and_the_same_for_a_seed(seed):
    graph = random_graph(seed)
    assert graph == random_graph(seed)
    assert all(source < position for position, sources in enumerate(graph.inputs_of) for source in sources)
    assert len(graph.backward_outputs) == len([n for n in graph.nodes if n.kind in (NodeKind.PARAM, NodeKind.INPUT)])


def test_the_stack_of_layers_and_the_trace():
    trace = sample_trace(layered(3), two_matmuls())
    assert len(trace.breaks) == 1
    assert len(trace.regions[0].nodes) == 3 + 2 + 3 * 3 + 3 * 6 + 1
