"""Folding of saved values by repeated layer, and owners for nodes that tracing left without."""

from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, layered, random_graph

from aotcli.analysis.layers import flat_rows, fold_saved, layer_pattern, module_label
from aotcli.analysis.op_names import node_label, op_label, storage_maker
from aotcli.analysis.owners import assign_owners, with_owners
from aotcli.ir.joint import JointGraph, NodeKind, Ref, Tag
from aotcli.ir.partition import Category, Reason, SavedKind, SavedValue
from aotcli.ir.tensor import TensorSpec


def saved(graph: JointGraph, *names: str, rule: str = "cut", text: str = "cut: min bytes") -> list[SavedValue]:
    """Saved values of a graph by hand, bytes by unique storage as a plan counts them."""
    values: list[SavedValue] = []
    seen: set[int] = set()
    for name in names:
        node = graph[name]
        assert isinstance(node.value, TensorSpec)
        fresh = node.value.storage not in seen
        seen.add(node.value.storage)
        values.append(
            SavedValue(
                id=graph.index[name],
                name=name,
                op=node.target,
                kind=SavedKind.TENSOR,
                category=Category.ACTIVATION,
                value=node.value,
                nbytes=node.value.storage_nbytes if fresh else 0,
                storage=node.value.storage,
                module=node.module,
                module_type=node.module_type,
                source=node.source,
                reason=Reason(rule, text),
                users=(),
                is_input=False,
            )
        )
    return values


def ops(graph: JointGraph, target: str) -> list[str]:
    return [node.name for node in graph.nodes if node.target == target and node.partitioner_tag is None]


class TestFolding:
    def test_equal_layers_make_one_row(self) -> None:
        graph = layered(12)
        values = saved(graph, *ops(graph, "aten.mm.default"))
        (row,) = fold_saved(graph, values)
        assert (row.count, row.module, row.what, row.shape) == (12, "h.*.fc", "mm", (8, 16))
        assert row.nbytes == 12 * 8 * 16 * 4
        assert row.source == "net.py:7"
        assert row.sources == 1

    def test_rows_are_ordered_by_bytes(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (2, 4))
        small = g.pointwise("aten.exp.default", x, module="a", module_type="A")
        large = g.op("aten.mm.default", x, x, shape=(64, 64), module="b", module_type="B")
        graph = g.build([small, large])
        rows = fold_saved(graph, saved(graph, small.name, large.name))
        assert [row.module for row in rows] == ["b", "a"]

    @pytest.mark.parametrize(
        "change", [{"shape": (8, 8)}, {"dtype": "bfloat16"}, {"target": "aten.sin.default"}, {"module_type": "Other"}]
    )
    def test_what_differs_is_not_folded(self, change: dict[str, object]) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        same: dict[str, object] = {"target": "aten.exp.default", "shape": (4, 4), "module_type": "Act"}
        fields = [same, {**same, **change}]
        made = [g.pointwise(f.pop("target"), x, module=f"h.{i}.act", **f) for i, f in enumerate(map(dict, fields))]
        graph = g.build(made)
        assert len(fold_saved(graph, saved(graph, *(each.name for each in made)))) == 2

    def test_another_reason_is_another_row(self) -> None:
        graph = layered(2)
        first, second = ops(graph, "aten.mm.default")
        values = saved(graph, first) + saved(graph, second, rule="reduction", text="reduction")
        assert len(fold_saved(graph, values)) == 2

    def test_siblings_of_one_class_share_a_row(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        paths = ["h.0.ln1", "h.0.ln2", "h.1.ln1", "h.1.ln2", "f"]
        made = [g.pointwise("aten.exp.default", x, module=path, module_type="LayerNorm") for path in paths]
        graph = g.build(made)
        (row,) = fold_saved(graph, saved(graph, *(each.name for each in made)))
        assert (row.module, row.count) == ("ln1 ln2 f", 5)

    def test_siblings_with_one_parent_keep_it(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        paths = ["h.0.out", "h.0.proj", "h.1.out", "h.1.proj"]
        made = [g.pointwise("aten.exp.default", x, module=path, module_type="Linear") for path in paths]
        graph = g.build(made)
        (row,) = fold_saved(graph, saved(graph, *(each.name for each in made)))
        assert row.module == "h.*.out,proj"

    def test_views_of_one_storage_are_one_tensor(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        qkv = g.op("aten.addmm.default", x, x, shape=(4, 12), module="h.0.qkv", module_type="Linear")
        parts = [g.view(qkv, (4, 4), target="aten.slice.Tensor", module="h.0") for _ in range(3)]
        graph = g.build(parts)
        (row,) = fold_saved(graph, saved(graph, *(part.name for part in parts)))
        assert (row.count, row.nbytes, row.module) == (1, 4 * 12 * 4, "h.0.qkv")
        assert (row.what, row.shape) == ("addmm, 3 views", (4, 12))
        assert len(row.values) == 3

    def test_flat_rows_name_every_value(self) -> None:
        graph = layered(3)
        names = ops(graph, "aten.mm.default")
        rows = flat_rows(graph, saved(graph, *names))
        assert [row.values[0].name for row in rows] == names
        assert [row.module for row in rows] == ["h.0.fc", "h.1.fc", "h.2.fc"]

    @pytest.mark.parametrize("seed", range(20))
    def test_folding_keeps_every_byte_and_value(self, seed: int) -> None:
        graph = random_graph(seed, 60, 10)
        names = [node.name for node in graph.nodes if node.kind is NodeKind.OP and isinstance(node.value, TensorSpec)]
        values = saved(graph, *names)
        rows = fold_saved(graph, values)
        assert sum(row.nbytes for row in rows) == sum(value.nbytes for value in values)
        assert sorted(v.name for row in rows for v in row.values) == sorted(names)
        assert sum(row.count for row in rows) == len({value.storage for value in values})

    def test_only_the_asked_for_categories(self) -> None:
        graph = layered(1)
        (value,) = saved(graph, *ops(graph, "aten.mm.default"))
        parameter = dataclasses.replace(value, category=Category.PARAMETER)
        assert fold_saved(graph, [parameter]) == ()
        assert len(fold_saved(graph, [parameter], [Category.PARAMETER])) == 1


def test_labels_of_modules() -> None:
    assert layer_pattern("h.3.fc") == "h.*.fc"
    assert layer_pattern("layer1.0.conv2") == "layer1.*.conv2"
    assert module_label("") == "(model)"
    assert module_label(None) == "?"


@pytest.mark.parametrize(
    ("target", "item", "label"),
    [
        ("aten.addmm.default", None, "addmm"),
        ("aten._scaled_dot_product_flash_attention_for_cpu.default", 0, "attention out"),
        ("aten._scaled_dot_product_efficient_attention.default", 1, "attention lse"),
        ("aten.native_layer_norm.default", 2, "layer norm rstd"),
        ("prims.convert_element_type.default", None, "cast"),
        ("aten.sort.default", 1, "sort [1]"),
        ("mylib.my_op.default", None, "my op"),
    ],
)
def test_labels_of_ops(target: str, item: int | None, label: str) -> None:
    assert op_label(target, item) == label


def test_the_maker_of_a_view_is_the_op_that_allocated() -> None:
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    pair = g.op("aten.var_mean.correction", x, shapes=[(4, 1), (4, 1)])
    mean = g.getitem(pair, 1)
    graph = g.build([g.view(g.view(mean, (1, 4)), (4,))])
    maker = storage_maker(graph, "view_1")
    assert maker.name == mean.name
    assert node_label(graph, maker) == "mean"


class TestOwners:
    def test_what_tracing_wrote_is_kept(self) -> None:
        graph = layered(3)
        owned = with_owners(graph)
        for before, after in zip(graph.nodes, owned.nodes, strict=True):
            if before.module is not None:
                assert (after.module, after.source) == (before.module, before.source)
        assert owned.fingerprint == graph.fingerprint

    def test_parameters_belong_to_their_module(self) -> None:
        owned = with_owners(layered(2))
        assert owned["primals_2"].module == "h.1.fc"
        assert owned["primals_2"].module_type == "Linear"
        assert owned["primals_2"].source == "net.py:7"

    def test_a_reader_of_a_parameter_through_views_is_of_its_module(self) -> None:
        g = GraphBuilder()
        w, x = g.param("w", (4, 4), origin="h.0.qkv.weight"), g.input("x", (4, 4))
        before = g.pointwise("aten.exp.default", x, module="h.0.ln", source="net.py:1")
        product = g.matmul(before, g.view(w, (4, 4), target="aten.t.default"), (4, 4))
        after = g.pointwise("aten.exp.default", product, module="h.0", source="net.py:2")
        graph = with_owners(g.build([after]))
        assert graph[product.name].module == "h.0.qkv"
        assert graph[product.name].source == "net.py:1"

    def test_a_sum_of_gradients_is_of_the_enclosing_module(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        g.pointwise("aten.exp.default", x, module="h.0", module_type="Block")
        left = g.pointwise("aten.exp.default", x, module="h.0.fc")
        right = g.pointwise("aten.sin.default", x, module="h.0.ln")
        total = g.pointwise("aten.add.Tensor", left, right)
        graph = with_owners(g.build([total]))
        assert (graph[total.name].module, graph[total.name].module_type) == ("h.0", "Block")

    def test_a_list_of_modules_owns_nothing(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        total = g.pointwise(
            "aten.add.Tensor",
            g.pointwise("aten.exp.default", x, module="h.0"),
            g.pointwise("aten.sin.default", x, module="h.1"),
        )
        assert with_owners(g.build([total]))[total.name].module == ""

    def test_a_source_without_inputs_is_of_its_users(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        zeros = g.op("aten.full.default", [4, 4], 0, shape=(4, 4))
        used = g.pointwise("aten.add.Tensor", zeros, x, module="te", source="net.py:4")
        graph = with_owners(g.build([used]))
        assert (graph[zeros.name].module, graph[zeros.name].source) == ("te", "net.py:4")

    def test_a_chain_without_modules_takes_the_one_it_hangs_on(self) -> None:
        g = GraphBuilder()
        value = g.pointwise("aten.exp.default", g.input("x", (4, 4)), module="act", source="net.py:3")
        for _ in range(5):
            value = g.pointwise("aten.exp.default", value)
        graph = with_owners(g.build([value]))
        assert {node.module for node in graph.nodes if node.kind is NodeKind.OP} == {"act"}

    def test_nothing_known_stays_unknown(self) -> None:
        g = GraphBuilder()
        value = g.pointwise("aten.exp.default", g.input("x", (4, 4)))
        owners = assign_owners(g.build([value]))
        assert all(owner.module is None and owner.source is None for owner in owners)

    def test_nested_graphs_are_owned_too(self) -> None:
        inner = GraphBuilder(name="body")
        a = inner.input("a", (4, 4))
        b = inner.pointwise("aten.exp.default", a, module="h.0", source="net.py:1")
        nested = inner.build([inner.pointwise("aten.sin.default", b)], fingerprinted=False)
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        body = g.subgraph("body", nested)
        graph = with_owners(g.build([g.op("higher_order.wrap", body, x, shape=(4, 4))], fingerprinted=False))
        assert dict(graph.subgraphs)["body"].nodes[-2].module == "h.0"

    def test_every_op_of_a_graph_with_half_its_modules_gone_is_owned(self) -> None:
        graph = layered(8)
        stripped = dataclasses.replace(
            graph,
            nodes=tuple(
                dataclasses.replace(node, module=None, module_type=None, source=None) if position % 2 else node
                for position, node in enumerate(graph.nodes)
            ),
        )
        owned = [node for node in with_owners(stripped).nodes if node.kind is NodeKind.OP]
        assert all(node.module is not None and node.source is not None for node in owned)


def test_a_view_tag_is_what_makes_a_view() -> None:
    g = GraphBuilder()
    w, x = g.param("w", (4, 4), origin="fc.weight"), g.input("x", (4, 4))
    copy = g.op("aten.clone.default", w, shape=(4, 4))
    read = g.op("aten.mm.default", Ref(copy.name), x, shape=(4, 4))
    graph = with_owners(g.build([read]))
    assert Tag.VIEW not in graph[copy.name].tags
    assert graph[read.name].module == "fc"
