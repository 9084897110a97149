"""The memory timeline, against figures worked out by hand."""

from __future__ import annotations

from builders import GraphBuilder, layered, random_graph, two_matmuls

from aotcli.analysis.cut import cut
from aotcli.analysis.liveness import Timeline, simulate
from aotcli.ir.joint import JointGraph, NodeKind, Tag
from aotcli.ir.partition import Decision, Reason

WHY = Reason("test", "the test says so")
KIB = 1024


def timeline(graph: JointGraph, *saved: str, **fields: object) -> Timeline:
    decision = Decision(saved=tuple((name, WHY) for name in saved), **fields)  # type: ignore[arg-type]
    return simulate(graph, cut(graph, decision))


def steps(found: Timeline) -> list[tuple[str, int]]:
    return list(zip(found.names, found.live_bytes, strict=True))


def test_every_step_of_two_matmuls() -> None:
    # mm and relu make 128 bytes each, mm_1 32; the tangent has 32, the gradients 256 and 512.
    found = timeline(two_matmuls(), "primals_2", "primals_3", "relu")
    assert steps(found) == [
        ("mm", 128),
        ("relu", 256),  # mm dies here
        ("mm_1", 128 + 32),
        ("t", 128 + 32 + 32),  # a view of relu, which the backward holds; the output stays; the tangent is there
        ("mm_2", 192 + 256),
        ("t_1", 448),
        ("mm_3", 448 + 128),  # the tangent dies here
        ("threshold_backward", 416 + 128 + 128),  # relu and mm_3 die here
        ("t_2", 416),
        ("mm_4", 416 + 512),
    ]
    assert (found.peak_bytes, found.peak_name, found.peak_in_backward) == (928, "mm_4", True)
    assert found.forward_steps == 3
    assert found.held_bytes == 128 + 32


def test_recomputing_lowers_what_is_held_and_lengthens_the_backward() -> None:
    saving = timeline(two_matmuls(), "primals_2", "primals_3", "relu")
    again = timeline(two_matmuls(), "primals_1", "primals_2", "primals_3")
    assert again.held_bytes == saving.held_bytes - 128
    assert len(again.names) == len(saving.names) + 2


def chain(length: int) -> JointGraph:
    """A chain of sines whose backward reads every link."""
    g = GraphBuilder()
    x, t = g.input("x", (256,)), g.tangent("tangents_1", (256,))
    values = [x]
    for i in range(length):
        values.append(g.pointwise("aten.sin.default", values[-1], name=f"s{i}"))
    for value in reversed(values[:-1]):
        t = g.pointwise("aten.mul.Tensor", t, value)
    return g.build([values[-1]], [t])


def test_saved_values_die_at_their_last_use_in_the_backward() -> None:
    found = timeline(chain(4), "x", "s0", "s1", "s2")
    assert [live for _, live in steps(found)] == [n * KIB for n in (1, 2, 3, 4, 6, 5, 4, 3)]
    assert found.peak_name == "mul"


def test_what_the_step_returns_stays_to_the_end() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (256,)), g.tangent("tangents_1", (256,))
    early = g.pointwise("aten.sin.default", x, name="early")
    grad = g.pointwise("aten.mul.Tensor", t, x)
    late = g.pointwise("aten.mul.Tensor", g.pointwise("aten.mul.Tensor", grad, x), x)
    found = timeline(g.build([early], [late]), "x")
    # output, tangent and first product; then output and two products; the same again
    assert [live for _, live in steps(found)] == [KIB, 3 * KIB, 3 * KIB, 3 * KIB]


def test_views_hold_their_base_and_cost_nothing() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (256,)), g.tangent("tangents_1", (4,))
    base = g.pointwise("aten.sin.default", x, name="base")
    small = g.op("aten.slice.Tensor", base, 0, 0, 4, shape=(4,), storage_of=base, name="small")
    out = g.pointwise("aten.cos.default", small, name="out")
    graph = g.build([out], [g.pointwise("aten.mul.Tensor", t, small)])
    found = timeline(graph, "small")
    assert found.held_bytes == KIB + 16  # the slice keeps all of its base
    assert steps(found)[1] == ("small", KIB)


def test_a_value_computed_again_is_an_allocation_of_its_own() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (256,)), g.tangent("tangents_1", (256,))
    base = g.pointwise("aten.sin.default", x, name="base")
    view = g.view(base, (16, 16), name="view")
    out = g.pointwise("aten.cos.default", view, name="out")
    grad = g.pointwise("aten.mul.Tensor", t, base, name="grad", shape=(256,))
    grad = g.pointwise("aten.mul.Tensor", grad, g.view(view, (256,), name="flat"), name="grad_2", shape=(256,))
    found = timeline(g.build([out], [grad]), "x", "view")
    # `view` is saved and holds the old base; the base that the backward reads is made anew beside it.
    assert dict(steps(found)[2:])["base"] == 4 * KIB


def test_merged_subexpressions_share_a_storage() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (256,)), g.tangent("tangents_1", (256,))
    first = g.pointwise("aten.sin.default", x, name="first")
    again = g.pointwise("aten.sin.default", x, name="again")
    grad = g.pointwise("aten.mul.Tensor", t, g.view(again, (256,), name="seen"), name="grad")
    found = timeline(g.build([first], [grad]), "first", replaced={"again": "first"})
    assert dict(steps(found))["seen"] == 2 * KIB  # the output, which is `first`, and the tangent


def test_parameters_and_inputs_are_not_counted_and_writes_to_them_allocate_nothing() -> None:
    g = GraphBuilder()
    x, t = g.param("x", (256,)), g.tangent("tangents_1", (256,))
    count = g.buffer("count", (256,), mutated=True)
    y = g.pointwise("aten.sin.default", x)
    g.op(
        "aten.copy_.default", count, y, shape=(256,), storage_of=count, tags={Tag.MUTABLE, Tag.EFFECTFUL}, name="write"
    )
    found = timeline(g.build([y], [g.pointwise("aten.mul.Tensor", t, x), None]), "x")
    assert dict(steps(found))["write"] == KIB


def test_nothing_runs_in_an_empty_graph() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    found = simulate(graph := g.build([x]), cut(graph, Decision(saved=())))
    assert (found.peak_bytes, found.peak_at, found.peak_name) == (0, -1, None)


def test_recomputing_everything_holds_only_the_output() -> None:
    graph = layered(6)
    primals = [node.name for node in graph.placeholders if node.kind is not NodeKind.TANGENT]
    forward = [node.name for node in graph.nodes if node.kind is NodeKind.OP and node.partitioner_tag is None]
    output = 8 * 16 * 4
    assert timeline(graph, *primals).held_bytes == output
    # Of each layer the product; of each but the last the sum too: the last one's is the output.
    assert timeline(graph, *primals, *forward).held_bytes == output * (6 + 5 + 1)


def test_live_bytes_of_random_graphs_are_never_negative() -> None:
    for seed in range(30):
        graph = random_graph(seed)
        primals = [node.name for node in graph.placeholders if node.kind is not NodeKind.TANGENT]
        drawn = [node.name for node in graph.nodes if Tag.RANDOM in node.tags]
        found = timeline(graph, *primals, *drawn)
        assert found.peak_bytes >= found.held_bytes >= 0
        assert min(found.live_bytes) >= 0
