from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, count_calls, layered, random_graph, two_matmuls

from aotcli.analysis.assemble import assemble
from aotcli.errors import VerificationError
from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref
from aotcli.ir.partition import Category, Decision, Partition, Reason, SavedKind
from aotcli.ir.tensor import OpaqueSpec, TensorSpec
from aotcli.ir.verify import verify_graph, verify_partition

BASE = two_matmuls()


def changed(graph: JointGraph, name: str, /, **fields) -> JointGraph:
    return dataclasses.replace(
        graph,
        nodes=tuple(dataclasses.replace(node, **fields) if node.name == name else node for node in graph.nodes),
    )


def spec(name: str, **fields) -> dict:
    return {"value": dataclasses.replace(BASE[name].value, **fields)}


def moved(graph: JointGraph, name: str, to: int) -> JointGraph:
    nodes = [node for node in graph.nodes if node.name != name]
    nodes.insert(to, graph[name])
    return dataclasses.replace(graph, nodes=tuple(nodes))


def symbolic(**fields) -> JointGraph:
    g = GraphBuilder()
    g.symint("s0", hint=3)
    x = g.input("x", ("s0", 4))
    return changed(g.build([x]), "x", value=dataclasses.replace(g.value(x), **fields))


def nested(**fields) -> JointGraph:
    inner = GraphBuilder(name="body")
    a = inner.input("a", (2,))
    body = inner.build([inner.pointwise("aten.exp.default", a)])
    g = GraphBuilder()
    x = g.input("x", (2,))
    ref = g.subgraph("body", body, name="body_graph")
    return dataclasses.replace(g.build([g.op("higher_order.invoke", ref, [x], shape=(2,))]), **fields)


FAULTS = {
    "two nodes are named mm": changed(BASE, "mm_1", name="mm"),
    "relu reads gone, which does not exist": changed(BASE, "relu", args=(Ref("gone"),)),
    "relu reads mm, which stands later": moved(BASE, "mm", 6),
    "placeholder primals_3 stands after the first op": moved(BASE, "primals_3", 9),
    "its last node is not the output": dataclasses.replace(BASE, nodes=BASE.nodes[:-1]),
    "it has an output before its end": dataclasses.replace(
        BASE, nodes=(*BASE.nodes[:-1], Node("output_1", NodeKind.OUTPUT, "output"), BASE.nodes[-1])
    ),
    "its last node": dataclasses.replace(BASE, nodes=()),
    "5 forward outputs of 4 outputs": dataclasses.replace(BASE, num_forward_outputs=5),
    "no backward, but 3 backward outputs": dataclasses.replace(BASE, has_backward=False),
    "level 'x' is neither": dataclasses.replace(BASE, level="x"),
    "static input gone does not exist": dataclasses.replace(BASE, static_inputs=("gone",)),
    "static input tangents_1 is no input": dataclasses.replace(BASE, static_inputs=("tangents_1",)),
    "a static input is named twice": dataclasses.replace(BASE, static_inputs=("primals_1", "primals_1")),
    "mutated input relu is no input": dataclasses.replace(BASE, mutated=("relu",)),
    "primals_1 is read but has no value": changed(BASE, "primals_1", value=None),
    "relu reads mm, which has no value": changed(BASE, "mm", value=None),
    "placeholder primals_1 has arguments": changed(BASE, "primals_1", args=(1,)),
    "bytes do not divide": changed(BASE, "relu", **spec("relu", nbytes=127)),
    "it reaches over 128 bytes of a storage of 64": changed(BASE, "relu", **spec("relu", storage_nbytes=64)),
    "differ in length": changed(BASE, "relu", **spec("relu", stride=(1,))),
    "a size is out of range": changed(BASE, "relu", **spec("relu", shape=(-2, 16))),
    "a shape has a hint if and only if": symbolic(hint=None),
    "storage 4 has 128 bytes on cpu at mm, 256 on cpu at relu": changed(
        BASE, "relu", **spec("relu", storage=4, storage_nbytes=256)
    ),
    "storage 4 has 128 bytes on cpu at mm, 128 on meta": changed(
        BASE, "relu", **spec("relu", storage=4, device="meta")
    ),
    "no node refers to the nested graph other": nested(subgraphs=(*nested().subgraphs, ("other", BASE))),
    "refers to a nested graph body that is not there": nested(subgraphs=()),
    "two nested graphs have the same name": nested(subgraphs=nested().subgraphs * 2),
    "body is not a valid joint graph": nested(subgraphs=(("body", dataclasses.replace(BASE, name="body", level="?")),)),
}


@pytest.mark.parametrize("message", FAULTS)
def test_each_fault_of_a_graph_is_found(message):
    with pytest.raises(VerificationError) as caught:
        verify_graph(FAULTS[message])
    assert message in str(caught.value)


def getitem_of(index: int, **fields) -> JointGraph:
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    pair = g.op("aten.var_mean.correction", x, [1], shapes=[(4,), (4,)], name="pair")
    part = g.getitem(pair, 0, name="part")
    graph = g.build([part])
    return changed(graph, "part", args=(Ref("pair"), index), **fields)


def test_items_are_within_their_tuple_and_look_like_it():
    verify_graph(getitem_of(0))
    verify_graph(getitem_of(-2))
    with pytest.raises(VerificationError, match="part takes item 2 of 2"):
        verify_graph(getitem_of(2))
    with pytest.raises(VerificationError, match="part differs from the item"):
        verify_graph(getitem_of(1))


@pytest.mark.parametrize("seed", range(30))
def test_good_graphs_pass(seed):
    verify_graph(random_graph(seed))
    verify_graph(nested())
    verify_graph(symbolic())
    verify_graph(layered(3))


def test_an_expanded_tensor_reaches_no_further_than_its_storage():
    g = GraphBuilder()
    x = g.input("x", (1, 4))
    e = g.op("aten.expand.default", x, [1000, 4], shape=(1000, 4), storage_of=x, stride=(0, 1))
    verify_graph(g.build([e]))


def test_an_error_shows_the_neighbourhood():
    with pytest.raises(VerificationError) as caught:
        verify_graph(FAULTS["relu reads gone, which does not exist"])
    lines = str(caught.value).splitlines()
    marked = [line for line in lines if line.startswith(">")]
    assert marked == [">     5  relu: float32[2, 16] = aten.relu.default(gone)  # net.py:4"]
    assert any("mm: float32[2, 16] = aten.mm.default(primals_3, primals_1)" in line for line in lines)
    assert len(lines) < 12
    assert all(len(line) <= 120 for line in lines)


# Partitions.


def plan(graph: JointGraph, *saved: str) -> Partition:
    return assemble(graph, Decision(saved=tuple((name, Reason("test", "by hand")) for name in saved)), strategy="test")


GOOD = plan(BASE, "primals_2", "primals_3", "relu")
RECOMPUTING = plan(BASE, "primals_1", "primals_2", "primals_3")


def saved(name: str, /, **fields) -> Partition:
    values = tuple(dataclasses.replace(v, **fields) if v.name == name else v for v in GOOD.saved)
    return dataclasses.replace(GOOD, saved=values)


def without(values: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(value for value in values if value != name)


def swapped(names: tuple[str, ...], one: str, two: str) -> tuple[str, ...]:
    return tuple({one: two, two: one}.get(name, name) for name in names)


PARTITION_FAULTS = {
    "it was made for graph x": dataclasses.replace(GOOD, fingerprint="x"),
    "it was made at level inductor": dataclasses.replace(GOOD, level="inductor"),
    "gone in its forward nodes does not exist": dataclasses.replace(GOOD, forward_nodes=("gone",)),
    "primals_1 in its backward nodes is no op": dataclasses.replace(GOOD, backward_nodes=("primals_1",)),
    "mm stands twice in its forward nodes": dataclasses.replace(GOOD, forward_nodes=("mm", "mm")),
    "gone in its replaced nodes does not exist": dataclasses.replace(GOOD, replaced={"gone": "mm"}),
    "the forward runs mm_1, which reads relu, but relu is computed only later": dataclasses.replace(
        GOOD, forward_nodes=swapped(GOOD.forward_nodes, "mm_1", "relu")
    ),
    "mm_3, which reads tangents_1, but tangents_1 is neither handed to it nor computed": dataclasses.replace(
        GOOD, forward_nodes=(*GOOD.forward_nodes, "mm_3")
    ),
    "the forward returns mm_1": dataclasses.replace(GOOD, forward_nodes=without(GOOD.forward_nodes, "mm_1")),
    "the backward runs t, which reads relu, but relu is neither handed": dataclasses.replace(
        GOOD, saved=tuple(value for value in GOOD.saved if value.name != "relu")
    ),
    "the backward runs t_2, which reads primals_3": dataclasses.replace(
        GOOD, saved=tuple(value for value in GOOD.saved if value.name != "primals_3")
    ),
    "the backward returns mm_4": dataclasses.replace(GOOD, backward_nodes=without(GOOD.backward_nodes, "mm_4")),
    "recomputed nodes are not those that run in both halves: mm": dataclasses.replace(GOOD, recomputed=("mm",)),
    "recomputed nodes are not those that run in both halves: relu": dataclasses.replace(
        RECOMPUTING, recomputed=("mm",)
    ),
    "mm is saved and computed again": dataclasses.replace(
        RECOMPUTING, saved=(*RECOMPUTING.saved, dataclasses.replace(GOOD.saved[0], name="mm"))
    ),
    "relu has the number 0": saved("relu", id=0),
    "relu has the number 99": saved("relu", id=99),
    "relu is not described as the graph has it": saved("relu", module="other"),
    "relu is saved as a symint": saved("relu", kind=SavedKind.SYMINT),
    "relu is marked as an input": saved("relu", is_input=True),
    "primals_3 is marked not as an input": saved("primals_3", is_input=False),
    "the users of relu are": saved("relu", users=("mm_2",)),
    "saving relu costs 128 bytes, not 64": saved("relu", nbytes=64),
    "relu is activation memory, not parameter": saved("relu", category=Category.PARAMETER),
    "primals_2 is parameter memory, not activation": saved("primals_2", category=Category.ACTIVATION),
    "its saved_bytes are 128, not 1": dataclasses.replace(GOOD, saved_bytes=1),
    "its saved_input_bytes are 320, not 1": dataclasses.replace(GOOD, saved_input_bytes=1),
    "its saved_output_bytes are 0, not 1": dataclasses.replace(GOOD, saved_output_bytes=1),
    "FLOPs of forward": dataclasses.replace(GOOD, recompute_flops=10**12),
    "its peak is -1 bytes": dataclasses.replace(GOOD, peak_bytes=-1),
}


@pytest.mark.parametrize("message", PARTITION_FAULTS)
def test_each_fault_of_a_partition_is_found(message):
    with pytest.raises(VerificationError) as caught:
        verify_partition(BASE, PARTITION_FAULTS[message])
    assert message in str(caught.value)


def test_good_partitions_pass():
    verify_partition(BASE, GOOD)
    verify_partition(BASE, RECOMPUTING)
    assert set(RECOMPUTING.recomputed) == {"mm", "relu"}


def test_a_saved_value_that_the_forward_does_not_have():
    fault = dataclasses.replace(GOOD.saved[-1], name="mm_2")
    with pytest.raises(VerificationError, match="mm_2 is saved, but the forward does not have it"):
        verify_partition(BASE, dataclasses.replace(GOOD, saved=(*GOOD.saved, fault)))


def test_a_saved_value_that_nothing_reads():
    extra = plan(BASE, "mm", "primals_1", "primals_2", "primals_3").saved
    unread = dataclasses.replace(next(v for v in extra if v.name == "mm"), users=())
    with pytest.raises(VerificationError, match="mm is saved, but the backward does not read it"):
        verify_partition(BASE, dataclasses.replace(GOOD, saved=(*GOOD.saved, unread)))


def test_a_partition_error_shows_the_neighbourhood():
    with pytest.raises(VerificationError) as caught:
        verify_partition(BASE, PARTITION_FAULTS["relu has the number 0"])
    assert any(line.startswith(">") and "relu" in line for line in str(caught.value).splitlines())


def test_bytes_are_counted_once_for_a_storage():
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent(shape=(4, 4))
    y = g.pointwise("aten.exp.default", x, name="y")
    v = g.view(y, (16,), name="v")
    w = g.pointwise("aten.sum.default", v, shape=(4, 4), name="w")
    b = g.pointwise("aten.mul.Tensor", t, y, name="b")
    c = g.op("aten.mul.Tensor", b, v, shape=(4, 4), name="c")
    graph = g.build([w], [c])
    both = plan(graph, "y", "v")
    assert [value.nbytes for value in both.saved] == [64, 0]
    assert both.saved_bytes == 64
    values = (both.saved[0], dataclasses.replace(both.saved[1], nbytes=64))
    twice = dataclasses.replace(both, saved=values, saved_bytes=128)
    with pytest.raises(VerificationError, match="saving v costs 0 bytes, not 64"):
        verify_partition(graph, twice)


def test_a_saved_forward_output_is_output_memory():
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    y = g.pointwise("aten.exp.default", x, name="y")
    graph = g.build([y], [g.pointwise("aten.mul.Tensor", t, y)])
    found = plan(graph, "y")
    assert (found.saved_bytes, found.saved_output_bytes) == (0, 16)


def test_opaque_values_are_saved_as_such():
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    handle = g.opaque("handle")
    y = g.pointwise("aten.exp.default", x)
    graph = g.build([y], [g.op("mylib.use.default", t, handle, shape=(4,))])
    found = plan(graph, "handle")
    assert [value.kind for value in found.saved] == [SavedKind.OPAQUE]
    assert isinstance(found.saved[0].value, OpaqueSpec)


def test_work_grows_with_the_graph_and_no_faster():
    small, large = layered(20), layered(160)
    assert count_calls(lambda: verify_graph(large)) < 10 * count_calls(lambda: verify_graph(small))


def test_a_tensor_without_storage_is_not_measured():
    value = dataclasses.replace(BASE["relu"].value, storage=-1, storage_nbytes=0, stride=())
    assert isinstance(value, TensorSpec)
    verify_graph(changed(BASE, "relu", value=value))
