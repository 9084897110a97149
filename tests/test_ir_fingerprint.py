from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest
from builders import GraphBuilder, count_calls, layered, random_graph, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.ir.fingerprint import canonical_order, fingerprint
from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref, Tag, map_refs
from aotcli.ir.tensor import SymbolSpec, TensorSpec


def renamed(graph: JointGraph, new: Callable[[str], str]) -> JointGraph:
    names = {node.name: new(node.name) for node in graph.nodes}
    nodes = tuple(
        dataclasses.replace(
            node,
            name=names[node.name],
            target=names[node.name] if node.is_placeholder else node.target,
            args=tuple(map_refs(arg, names) for arg in node.args),
            kwargs=tuple((key, map_refs(arg, names)) for key, arg in node.kwargs),
        )
        for node in graph.nodes
    )
    return dataclasses.replace(
        graph,
        nodes=nodes,
        static_inputs=tuple(names[name] for name in graph.static_inputs),
        mutated=tuple(names[name] for name in graph.mutated),
    )


def reordered(graph: JointGraph, seed: int) -> JointGraph:
    """Another topological order of the ops; ops with effects or randomness keep theirs."""
    rng = random.Random(seed)
    ordered = {Tag.RANDOM, Tag.IMPURE, Tag.MUTABLE}
    waits = {position: set(sources) for position, sources in enumerate(graph.inputs_of)}
    last = None
    for position, node in enumerate(graph.nodes):
        if node.tags & ordered:
            if last is not None:
                waits[position].add(last)
            last = position
    body = [p for p, node in enumerate(graph.nodes) if node.kind in (NodeKind.OP, NodeKind.ATTR)]
    done = {p for p, node in enumerate(graph.nodes) if node.is_placeholder}
    order = sorted(done)
    left = set(body)
    while left:
        chosen = rng.choice(sorted(p for p in left if waits[p] <= done))
        left.discard(chosen)
        done.add(chosen)
        order.append(chosen)
    nodes = tuple(graph.nodes[position] for position in (*order, len(graph.nodes) - 1))
    return dataclasses.replace(graph, nodes=nodes)


def restored(graph: JointGraph) -> JointGraph:
    """Storages numbered backwards."""

    def new(value):
        if isinstance(value, tuple):
            return tuple(new(part) for part in value)
        if isinstance(value, TensorSpec):
            return dataclasses.replace(value, storage=1000 - value.storage)
        return value

    return dataclasses.replace(
        graph, nodes=tuple(dataclasses.replace(node, value=new(node.value)) for node in graph.nodes)
    )


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_names_order_and_storage_numbers_do_not_matter(seed, shuffle):
    graph = random_graph(seed, 15, 15)
    other = renamed(restored(reordered(graph, shuffle)), lambda name: f"n{shuffle}_{name[::-1]}")
    assert fingerprint(other) == graph.fingerprint == fingerprint(graph)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_the_canonical_order_names_the_same_nodes_after_reordering(seed, shuffle):
    graph = random_graph(seed, 15, 15)
    other = reordered(graph, shuffle)
    users = graph.users_of
    first = [graph.nodes[p] for p in canonical_order(graph)]
    second = [other.nodes[p] for p in canonical_order(other)]
    for one, two in zip(first, second, strict=True):
        # Twins that nothing reads may swap places; every node that is read may not.
        assert one.name == two.name or not users[graph.index[one.name]] or _dead(graph, graph.index[one.name])


def _dead(graph: JointGraph, position: int) -> bool:
    return all(user != len(graph.nodes) - 1 and _dead(graph, user) for user in graph.users_of[position])


@pytest.mark.parametrize("seed", range(30))
def test_the_canonical_order_is_topological_and_complete(seed):
    graph = random_graph(seed)
    order = canonical_order(graph)
    assert sorted(order) == list(range(len(graph.nodes)))
    assert order[-1] == len(graph.nodes) - 1
    rank = {position: place for place, position in enumerate(order)}
    assert all(rank[source] < rank[p] for p, sources in enumerate(graph.inputs_of) for source in sources)


def changed(graph: JointGraph, name: str, **fields) -> JointGraph:
    return dataclasses.replace(
        graph,
        nodes=tuple(dataclasses.replace(node, **fields) if node.name == name else node for node in graph.nodes),
    )


def spec(graph: JointGraph, name: str, **fields) -> dict:
    return {"value": dataclasses.replace(graph[name].value, **fields)}


BASE = two_matmuls()

DIFFERENT = {
    "op": changed(BASE, "relu", target="aten.tanh.default"),
    "argument": changed(BASE, "mm", args=(Ref("primals_3"), Ref("primals_2"))),
    "argument order": changed(BASE, "mm_1", args=(Ref("primals_2"), Ref("relu"))),
    "constant": changed(BASE, "threshold_backward", args=(Ref("mm_3"), Ref("relu"), 1)),
    "type of a constant": changed(BASE, "threshold_backward", args=(Ref("mm_3"), Ref("relu"), False)),
    "keyword": changed(BASE, "relu", kwargs=(("inplace", False),)),
    "shape": changed(BASE, "relu", **spec(BASE, "relu", shape=(16, 2))),
    "dtype": changed(BASE, "relu", **spec(BASE, "relu", dtype="bfloat16")),
    "stride": changed(BASE, "relu", **spec(BASE, "relu", stride=(1, 2))),
    "device type": changed(BASE, "relu", **spec(BASE, "relu", device="cuda:0")),
    "alias": changed(BASE, "relu", **spec(BASE, "relu", storage=BASE["mm"].value.storage)),
    "kind of a placeholder": changed(BASE, "primals_3", kind=NodeKind.SEED),
    "level": dataclasses.replace(BASE, level="inductor"),
    "outputs": dataclasses.replace(BASE, num_forward_outputs=2),
    "backward": dataclasses.replace(BASE, has_backward=False),
    "static inputs": dataclasses.replace(BASE, static_inputs=("primals_1",)),
    "mutated inputs": dataclasses.replace(BASE, mutated=("primals_3",)),
}

SAME = {
    "name": dataclasses.replace(BASE, name="region7"),
    "module": changed(BASE, "relu", module="a.b", module_type="C"),
    "source": changed(BASE, "relu", source="x.py:1", code="x"),
    "origin": changed(BASE, "primals_1", origin="other"),
    "kind of a primal": changed(BASE, "primals_3", kind=NodeKind.BUFFER),
    "tags": changed(BASE, "relu", tags=frozenset({Tag.POINTWISE})),
    "flops": changed(BASE, "mm", flops=None),
    "checkpoint": changed(BASE, "relu", checkpoint="MUST_SAVE"),
    "own fingerprint": dataclasses.replace(BASE, fingerprint="x"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_the_fingerprint_sees(what):
    assert fingerprint(DIFFERENT[what]) != BASE.fingerprint


@pytest.mark.parametrize("what", SAME)
def test_what_the_fingerprint_does_not_see(what):
    assert fingerprint(SAME[what]) == BASE.fingerprint


def test_every_field_of_a_node_is_decided_about():
    # A field that is new must be put on one of the two sides, here and in the fingerprint.
    seen = {"kind", "target", "args", "kwargs", "value", "binds"}
    not_seen = {
        *("name", "module", "module_type", "source", "code", "origin", "partitioner_tag", "checkpoint", "ac_graph_id"),
        *("region_budget", "tags", "mutable_args", "flops"),
    }
    assert {field.name for field in dataclasses.fields(Node)} == seen | not_seen


def test_only_the_type_of_a_device_matters():
    graphs = [GraphBuilder(device=device) for device in ("cuda:0", "cuda:1", "cuda")]
    built = [g.build([g.pointwise("aten.exp.default", g.input("x", (2,)))]) for g in graphs]
    assert len({graph.fingerprint for graph in built}) == 1


def test_symbols_are_numbered_by_first_appearance():
    def graph(first: str, second: str, *, swapped: bool = False) -> JointGraph:
        g = GraphBuilder()
        g.symint(first, hint=3)
        g.symint(second, hint=5)
        x = g.input("x", (second, first) if swapped else (first, second))
        return g.build([g.op("aten.view.default", x, [-1], shape=(f"{first}*{second}",), storage_of=x)])

    assert graph("s0", "s1").fingerprint == graph("s77", "s27").fingerprint
    assert graph("s0", "s1").fingerprint != graph("s0", "s1", swapped=True).fingerprint


def test_traced_sizes_of_symbols_do_not_matter():
    def graph(hint: int) -> JointGraph:
        g = GraphBuilder()
        s = g.symint("s0", hint=hint)
        return g.build([g.pointwise("aten.exp.default", g.input("x", ("s0", 4))), s])

    assert graph(3).fingerprint == graph(300).fingerprint


def test_nested_graphs_count_by_what_they_hold():
    def graph(op: str, target: str, name: str = "body_graph") -> JointGraph:
        inner = GraphBuilder(name=target)
        body = inner.build([inner.pointwise(op, inner.input("a", (2,)))])
        g = GraphBuilder()
        x = g.input("x", (2,))
        body_ref = g.subgraph(target, body, name=name)
        return g.build([g.op("higher_order.invoke_subgraph", body_ref, target, [x], shape=(2,), name="call")])

    base = graph("aten.exp.default", "body_0").fingerprint
    assert graph("aten.sin.default", "body_0").fingerprint != base
    assert graph("aten.exp.default", "body_0", name="other").fingerprint == base


def two_random_ops(first: str, second: str) -> JointGraph:
    g = GraphBuilder()
    x = g.input("x", (2,))
    tags = {Tag.RANDOM}
    drawn = {
        name: g.op("aten.bernoulli.p", x, probability, shape=(2,), tags=tags, name=name)
        for name, probability in ((first, 0.1 if first == "a" else 0.2), (second, 0.1 if second == "a" else 0.2))
    }
    return g.build([drawn["a"], drawn["b"]])


def test_the_order_of_random_ops_is_meaning():
    assert two_random_ops("a", "b").fingerprint != two_random_ops("b", "a").fingerprint


def read_around_a_mutation(*, read_first: bool) -> JointGraph:
    g = GraphBuilder()
    buf, x = g.buffer("buf", (2,), mutated=True), g.input("x", (2,))
    if read_first:
        y = g.pointwise("aten.mul.Tensor", buf, x, name="y")
    g.op("aten.copy_.default", buf, x, shape=(2,), storage_of=buf, tags={Tag.MUTABLE}, name="copy")
    if not read_first:
        y = g.pointwise("aten.mul.Tensor", buf, x, name="y")
    return g.build([y])


def test_a_read_before_a_mutation_is_not_one_after_it():
    assert read_around_a_mutation(read_first=True).fingerprint != read_around_a_mutation(read_first=False).fingerprint


def test_what_nothing_reads_counts_and_comes_last():
    def graph(*dead: str) -> JointGraph:
        g = GraphBuilder()
        x = g.input("x", (2,))
        for op in dead:
            g.pointwise(op, g.pointwise("aten.neg.default", x))
        return g.build([g.pointwise("aten.exp.default", x, name="kept")])

    alone, one = graph(), graph("aten.sin.default")
    assert alone.fingerprint != one.fingerprint
    both = graph("aten.sin.default", "aten.cos.default")
    assert both.fingerprint == graph("aten.cos.default", "aten.sin.default").fingerprint != one.fingerprint
    order = [both.nodes[p].name for p in canonical_order(both)]
    assert order[:2] == ["x", "kept"]
    assert order[-1] == "output"


def test_symbolic_numbers_count():
    g = GraphBuilder()
    g.symint("s0", hint=3)
    x = g.input("x", ("s0",))
    base = g.build([g.sym_size(x, 0, "s0")])
    other = changed(base, "sym_size", value=SymbolSpec("int", "2*s0", 6))
    assert fingerprint(other) != base.fingerprint


def test_work_grows_with_the_graph_and_no_faster():
    small, large = layered(20), layered(160)
    assert count_calls(lambda: fingerprint(large)) < 10 * count_calls(lambda: fingerprint(small))
