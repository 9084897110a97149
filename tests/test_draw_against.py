"""Two steps drawn as one: what is added, removed, changed, and decided otherwise."""

from __future__ import annotations

import dataclasses

from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import check_drawing, check_scene, plan, record, svg_texts

import aotcli
from aotcli.analysis.scene import BoxKind, Change, Scene
from aotcli.analysis.scene_build import SceneOptions
from aotcli.analysis.scene_compare import build_merged_scene
from aotcli.ir.joint import JointGraph, Ref
from aotcli.render.layout import draw_scene


def merged(mine: JointGraph, theirs: JointGraph, ours: str = "mincut", other: str = "mincut") -> Scene:
    scene = build_merged_scene((mine, plan(mine, ours)), (theirs, plan(theirs, other)), SceneOptions(fold=False))
    check_scene(scene)
    return scene


def changes(scene: Scene) -> dict[str, Change]:
    return {box.id: box.change for box in scene.boxes if box.change is not Change.SAME}


def forward_chain(*ops: str) -> JointGraph:
    g = GraphBuilder()
    x: Ref = g.input("x", (4, 4))
    for op in ops:
        x = g.pointwise(f"aten.{op}.default", x, module=op, source=f"net.py:{len(op)}")
    return g.build([x])


def test_a_step_against_itself_has_no_change() -> None:
    for name in ("gpt", "unet", "attention"):
        graph = record(name).regions[0]
        scene = build_merged_scene((graph, plan(graph)), (graph, plan(graph)))
        assert changes(scene) == {}


def test_added_and_removed_ops_are_both_drawn() -> None:
    long, short = forward_chain("exp", "tanh", "cos", "sin"), forward_chain("exp", "tanh", "sin")
    assert changes(merged(long, short)) == {"f/cos": Change.ADDED}
    scene = merged(short, long)
    assert changes(scene) == {"g/cos": Change.REMOVED}
    links = {(link.source, link.target): link.change for link in scene.links}
    assert links["f/tanh", "g/cos"] is Change.REMOVED
    assert links["g/cos", "f/sin"] is Change.REMOVED
    assert links["f/tanh", "f/sin"] is Change.SAME


def test_what_is_removed_stands_where_it_ran() -> None:
    drawing = draw_scene(merged(forward_chain("exp", "tanh", "sin"), forward_chain("exp", "tanh", "cos", "sin")))
    check_drawing(drawing)
    y = {box.id: placed.y for box, placed in zip(drawing.scene.boxes, drawing.boxes, strict=True)}
    assert y["f/tanh"] < y["g/cos"] < y["f/sin"]


def test_a_changed_op_says_what_it_was() -> None:
    scene = merged(forward_chain("exp", "tanh", "sin"), forward_chain("exp", "sigmoid", "sin"))
    changed = [box for box in scene.boxes if box.change is Change.CHANGED]
    gone = [box for box in scene.boxes if box.change in (Change.ADDED, Change.REMOVED)]
    assert changed or {box.change for box in gone} == {Change.ADDED, Change.REMOVED}
    if changed:
        assert "sigmoid" in changed[0].was


def test_flips_between_saved_and_recomputed() -> None:
    graph = record("gpt").regions[0]
    scene = build_merged_scene((graph, plan(graph)), (graph, plan(graph, "recompute-all")))
    found = {box.change for box in scene.boxes if box.kind is BoxKind.SAVED}
    assert found == {Change.NOW_SAVED}
    scene = build_merged_scene((graph, plan(graph, "recompute-all")), (graph, plan(graph)))
    saved = [box for box in scene.boxes if box.kind is BoxKind.SAVED]
    assert {box.change for box in saved} == {Change.NOW_RECOMPUTED}
    assert any(box.change is Change.NOW_RECOMPUTED and box.recomputed for box in scene.boxes)
    # All that mincut saves is shown as gone.
    assert sum(box.nbytes for box in saved) == plan(graph).saved_bytes


def test_more_layers_are_a_run_of_their_own() -> None:
    small, large = layered(4), layered(7)
    scene = build_merged_scene((large, plan(large)), (small, plan(small)))
    added = [box for box in scene.boxes if box.change is Change.ADDED and box.kind is not BoxKind.SAVED]
    per_layer = 3 + 4  # ops of the forward, and of the backward
    assert sum(box.ops for box in added) == 3 * per_layer
    assert any(box.count > 1 for box in added)


def test_a_picture_says_whom_it_is_against() -> None:
    trace = sample_trace()
    result = aotcli.draw(trace, strategy="save-all", against="@recompute-all")
    shown = " ".join(svg_texts(result.svg()))
    assert "net · save-all against @recompute-all" in shown
    assert "@recompute-all saves 0 B" in shown
    assert "+ now saved" in shown
    assert aotcli.draw(trace, against=trace).pictures[0].scene.boxes
    assert aotcli.draw(trace, against=aotcli.partition(trace, strategy="save-all")).pictures


def test_regions_are_paired_by_number_or_by_name() -> None:
    one = sample_trace(two_matmuls())
    two = sample_trace(two_matmuls(), dataclasses.replace(layered(2), name="region1"))
    assert len(aotcli.draw(two, against=two).pictures) == 2
    assert len(aotcli.draw(one, against=two).pictures) == 1


@given(left=st.integers(0, 5000), right=st.integers(0, 5000))
@settings(max_examples=25, deadline=None)
def test_any_two_steps_make_one_sound_picture(left: int, right: int) -> None:
    mine, theirs = random_graph(left), random_graph(right)
    check_drawing(draw_scene(merged(mine, theirs)))
