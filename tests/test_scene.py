"""From graph and plan to boxes, links and groups."""

from __future__ import annotations

from typing import Any

import pytest
from builders import GraphBuilder, layered, random_graph, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import check_scene, ids, plan, record, record_scene, scene_of

from aotcli.analysis.scene import BoxKind, LinkKind, Scene, Side
from aotcli.analysis.scene_build import SceneOptions, build_scene
from aotcli.errors import InputError
from aotcli.ir.joint import JointGraph, Ref
from aotcli.ir.partition import Category


def shared_module(calls: int) -> JointGraph:
    """A module called several times, with another one between its calls."""
    g = GraphBuilder()
    x: Ref = g.input("x", (4, 4))
    for i in range(calls):
        w = g.param(f"w{i}", (4, 4), origin=f"fc{i}.weight")
        x = g.pointwise("aten.relu.default", x, module="act", module_type="ReLU")
        x = g.matmul(x, w, (4, 4), module=f"fc{i}", module_type="Linear")
    return g.build([x])


def box(scene: Scene, id_: str) -> Any:
    return scene.boxes[scene.box_index[id_]]


def test_modules_are_boxes_on_both_sides() -> None:
    scene = scene_of(two_matmuls(), depth=1, collapse=("fc1", "fc2", "act"))
    assert {"f/fc1", "f/act", "f/fc2", "b/fc1", "b/act", "b/fc2"} <= ids(scene)
    assert box(scene, "f/fc1").kind is BoxKind.MODULE
    assert box(scene, "b/fc1").side is Side.BACKWARD


def test_saved_values_stand_between_their_makers_and_readers() -> None:
    scene = scene_of(two_matmuls(), "save-all")
    saved = next(each for each in scene.boxes if each.kind is BoxKind.SAVED)
    makers = {link.source for link in scene.links if link.target == saved.id}
    readers = {link.target for link in scene.links if link.source == saved.id}
    assert makers == {"f/act"}
    assert readers == {"b/act", "b/fc2"}
    assert saved.nbytes == 2 * 16 * 4
    assert saved.reasons


def test_bytes_of_saved_boxes_are_the_plans() -> None:
    for name in ("gpt", "unet", "attention"):
        for strategy in ("mincut", "save-all", "recompute-all"):
            scene = record_scene(name, strategy)
            partition = plan(record(name).regions[0], strategy)
            assert sum(each.nbytes for each in scene.boxes if each.kind is BoxKind.SAVED) == partition.saved_bytes
            assert scene.totals.saved_bytes == partition.saved_bytes


def test_recomputed_ops_have_boxes_of_their_own_in_the_backward() -> None:
    scene = record_scene("gpt")
    again = [each for each in scene.boxes if each.recomputed]
    assert {each.label for each in again} >= {"gelu", "ln1"}
    assert all(each.side is Side.BACKWARD and each.id.startswith("r") for each in again)
    names = {name for each in again for name in each.all_members}
    assert names <= set(plan(record("gpt").regions[0]).recomputed)


def test_equal_layers_are_one() -> None:
    scene = scene_of(layered(5))  # layer 0 hands no gradient on, so its backward is shorter
    folded = [each for each in scene.boxes if each.count == 4]
    assert {each.module for each in folded} >= {"h.1-4", "h.1-4.fc"}
    assert {group.label: group.count for group in scene.groups} == {"h.0": 1, "h.1-4": 4}
    assert box(scene, "f/h.1-4.fc").layers == "h.1 to h.4"
    assert box(scene, "f/h.1-4.fc").ops == 4


def test_nearly_equal_layers_are_one_and_boxes_say_in_how_many_they_are() -> None:
    """The first of many ops that all layers read, such as a mask, is made in the first layer only."""
    g = GraphBuilder()
    x: Ref = g.input("x", (4, 4))
    for i in range(4):
        for _ in range(30):
            x = g.pointwise("aten.exp.default", x, module=f"h.{i}.act")
        if i == 0:
            x = g.matmul(x, x, (4, 4), module=f"h.{i}.mask")
    scene = scene_of(g.build([x]), depth=2)
    assert (box(scene, "f/h.*.act").count, box(scene, "f/h.*.mask").count) == (4, 1)


def test_unfolded_layers_stand_alone() -> None:
    scene = scene_of(layered(3), fold=False)
    assert {"f/h.0.fc", "f/h.1.fc", "f/h.2.fc"} <= ids(scene)
    assert all(each.count == 1 for each in scene.boxes)


def test_a_layer_of_another_shape_stays_out_of_the_run() -> None:
    g = GraphBuilder()
    x: Ref = g.input("x", (4, 4))
    for i, width in enumerate((4, 4, 4, 8)):
        w = g.param(f"w{i}", (4, width), origin=f"h.{i}.weight")
        x = g.matmul(x, w, (4, width), module=f"h.{i}", module_type="Linear")
    scene = scene_of(g.build([x]))
    assert {"f/h.0-2", "f/h.3"} <= ids(scene)


def test_links_between_layers_of_a_run_are_left_out_and_those_at_its_ends_stay() -> None:
    g = GraphBuilder()
    x: Ref = g.pointwise("aten.relu.default", g.input("x", (4, 4)), module="first")
    for i in range(3):
        x = g.pointwise("aten.exp.default", x, module=f"h.{i}")
    scene = scene_of(g.build([g.pointwise("aten.tanh.default", x, module="last")]))
    flows = {(link.source, link.target) for link in scene.links if link.kind is LinkKind.FLOW}
    assert {("f/first", "f/h.*"), ("f/h.*", "f/last")} <= flows


def test_gradient_sums_belong_to_their_layer() -> None:
    """Tracing gives them no module; without an owner each layer would have two loose boxes."""
    scene = record_scene("gpt")
    sums = [each for each in scene.boxes if each.label == "add" and each.side is Side.BACKWARD and each.count == 12]
    assert [each.group for each in sums] == ["b/h.*", "b/h.*"]


def test_gpt_of_twelve_layers_is_small_at_the_default() -> None:
    scene = record_scene("gpt")
    assert len(scene.boxes) <= 60
    assert {"f/h.*.fc", "b/h.*.fc", "f/head"} <= ids(scene)


def test_depth_opens_levels() -> None:
    closed, opened = record_scene("gpt", depth=1), record_scene("gpt", depth=2)
    assert "f/h.*" in ids(closed)
    assert "f/h.*" not in ids(opened)
    assert {"f/h.*.ln1", "f/h.*.fc"} <= ids(opened)
    assert "f/" in ids(record_scene("gpt", collapse=("(model)",)))


def test_expand_shows_ops_one_by_one() -> None:
    scene = record_scene("gpt", expand=("h.*.ln1",))
    inside = [each for each in scene.boxes if each.module == "h.*.ln1" and each.side is Side.FORWARD]
    assert {each.kind for each in inside} == {BoxKind.OP}
    assert {"var mean", "rsqrt"} <= {each.label for each in inside}
    assert all(each.count == 12 for each in inside if each.label == "var mean")


def test_expanding_one_layer_takes_it_out_of_the_run() -> None:
    scene = record_scene("gpt", depth=1, expand=("h.3",))
    assert {"f/h.0-2", "f/h.4-11", "f/h.3.fc"} <= ids(scene)


def test_collapse_closes_what_depth_would_open() -> None:
    scene = record_scene("gpt", collapse=("h.*",))
    assert "f/h.*" in ids(scene)
    assert not any(id_.startswith("f/h.*.") for id_ in ids(scene))


def test_parameters_and_inputs_are_shown_on_request() -> None:
    hidden = scene_of(two_matmuls())
    assert not [each for each in hidden.boxes if each.kind in (BoxKind.PARAM, BoxKind.INPUT)]
    shown = scene_of(two_matmuls(), show=frozenset({"params", "inputs"}))
    assert {each.label for each in shown.boxes if each.kind is BoxKind.PARAM} == {"fc1.weight", "fc2.weight"}
    assert {each.label for each in shown.boxes if each.kind is BoxKind.INPUT} == {"x"}
    assert any(each.label == "gradient" for each in shown.boxes)


def test_views_are_seen_through_unless_shown() -> None:
    assert "b:t" not in ids(scene_of(two_matmuls(), depth=9, expand=("*",)))
    assert "b:t" in ids(scene_of(two_matmuls(), depth=9, expand=("*",), show=frozenset({"views"})))


def test_one_side_keeps_what_is_saved_at_its_edge() -> None:
    for only, side in (("forward", Side.FORWARD), ("backward", Side.BACKWARD)):
        scene = scene_of(two_matmuls(), only=only)
        assert {each.side for each in scene.boxes} == {side, Side.SAVED}
        check_scene(scene)


def test_only_saved_leaves_makers_and_readers() -> None:
    scene = record_scene("gpt", only="saved")
    assert {link.kind for link in scene.links} == {LinkKind.SAVED}
    ends = {end for link in scene.links for end in (link.source, link.target)}
    assert ids(scene) == ends


def test_the_joint_graph_needs_no_plan() -> None:
    scene = build_scene(two_matmuls(), None, SceneOptions())
    assert not any(each.kind is BoxKind.SAVED or each.recomputed for each in scene.boxes)
    assert any(link.kind is LinkKind.READ and link.source == "f/act" for link in scene.links)


def test_focus_is_a_neighbourhood_op_by_op() -> None:
    near, far = (record_scene("gpt", focus="addmm_2", radius=radius) for radius in (1, 3))
    assert "f:addmm_2" in ids(near)
    assert ids(near) < ids(far)
    assert len(near.boxes) < 20
    assert {each.count for each in far.boxes} == {1}


@pytest.mark.parametrize("focus", ["h.3.fc", "attention", "aten.erf.default", "view_8", "h.*.proj"])
def test_focus_takes_modules_ops_and_views(focus: str) -> None:
    check_scene(record_scene("gpt", focus=focus, radius=1))


@pytest.mark.parametrize(
    ("options", "near"),
    [({"focus": "addmm_2x"}, "addmm_2"), ({"expand": ("h.3.fd",)}, "h.3.fc"), ({"collapse": ("hed",)}, "head")],
)
def test_what_matches_nothing_says_what_is_near(options: dict[str, Any], near: str) -> None:
    with pytest.raises(InputError) as caught:
        record_scene("gpt", **options)
    assert near in caught.value.why
    assert caught.value.fix


def test_calls_of_one_module_are_apart_where_they_would_close_a_circle() -> None:
    scene = scene_of(shared_module(3))
    assert {"f/act", "f/act@2", "f/act@3"} <= ids(scene)
    links = {(link.source, link.target) for link in scene.links}
    assert ("f/fc0", "f/act@2") in links


def test_the_pooling_of_a_unet_is_drawn_by_call() -> None:
    scene = record_scene("unet")
    assert {"f/pool", "f/pool@2", "f/pool@3"} <= ids(scene)


def test_small_values_share_a_box_and_lose_no_byte() -> None:
    scene = record_scene("gpt")
    saved = [each for each in scene.boxes if each.kind is BoxKind.SAVED]
    partition = plan(record("gpt").regions[0])
    wanted = [value.name for value in partition.saved if value.category is Category.ACTIVATION]
    assert sorted(name for each in saved for name in each.all_members) == sorted(wanted)
    assert len(saved) < 20


def test_a_graph_with_one_op() -> None:
    g = GraphBuilder()
    scene = scene_of(g.build([g.pointwise("aten.relu.default", g.input("x", (2, 2)))]))
    assert [each.label for each in scene.boxes] == ["relu", "output"]


def test_an_empty_graph() -> None:
    g = GraphBuilder()
    x = g.input("x", (2, 2))
    scene = scene_of(g.build([x]))
    assert scene.boxes == ()
    check_scene(scene)


def test_ids_do_not_depend_on_options_that_change_nothing() -> None:
    assert record_scene("gpt") == record_scene("gpt", limit=61)
    assert [each.id for each in record_scene("gpt").boxes] == [each.id for each in record_scene("gpt").boxes]


@given(seed=st.integers(0, 10_000), depth=st.integers(0, 4), fold=st.booleans(), single=st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_graph_makes_a_sound_scene(seed: int, depth: int, fold: bool, single: bool) -> None:
    graph = random_graph(seed)
    expand = ("*",) if single and any(node.module for node in graph.nodes) else ()
    scene = scene_of(graph, depth=depth, fold=fold, expand=expand, show=frozenset({"params", "inputs"}))
    check_scene(scene)
    partition = plan(graph)
    shown = [each for each in scene.boxes if each.kind in (BoxKind.OP, BoxKind.MODULE)]
    recomputed = {name for each in shown if each.recomputed for name in each.all_members}
    assert recomputed <= set(partition.recomputed)
    assert sum(each.nbytes for each in scene.boxes if each.kind is BoxKind.SAVED) <= partition.saved_bytes
