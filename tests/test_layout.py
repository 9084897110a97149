"""Places of boxes and links: what must hold for every drawing, and the shape of the hairpin."""

from __future__ import annotations

import pytest
from builders import GraphBuilder, count_calls, layered, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import check_drawing, overlap, record, record_scene, scene_of

import aotcli
from aotcli.analysis.scene import Box, BoxKind, Link, LinkKind, Scene, Side
from aotcli.render.layout import draw_scene
from aotcli.render.layout.drawing import DETAIL_SIZE, LABEL_SIZE, Drawing
from aotcli.render.layout.hairpin import layer
from aotcli.render.layout.passing import MOST_RANKS
from aotcli.render.svg import MARGIN
from aotcli.render.text_width import fit_width, text_width

A4_POINTS = (595.3, 841.9)
A4_MARGIN = 14.2  # 5 mm
POINTS_PER_PIXEL = 0.75
LEAST_POINTS = 8.0


@pytest.fixture(scope="module")
def gpt() -> Drawing:
    return draw_scene(record_scene("gpt"))


def ranks(scene: Scene) -> dict[str, int]:
    layers = layer(scene)
    return {box.id: layers.rank[position] for position, box in enumerate(scene.boxes)}


def chain(length: int) -> Scene:
    """Forward ops one after another, the first of which the last reads, too."""
    boxes = tuple(Box(f"f:{i}", BoxKind.OP, Side.FORWARD, f"op {i}") for i in range(length))
    links = [Link(f"f:{i}", f"f:{i + 1}", LinkKind.FLOW) for i in range(length - 1)]
    return Scene("chain", boxes, (*links, Link("f:0", f"f:{length - 1}", LinkKind.FLOW)))


@pytest.mark.parametrize("name", ["gpt", "unet", "attention"])
@pytest.mark.parametrize("strategy", ["mincut", "recompute-all"])
def test_samples_are_drawn_soundly(name: str, strategy: str) -> None:
    check_drawing(draw_scene(record_scene(name, strategy)))


def test_unfolded_ops_are_drawn_soundly() -> None:
    check_drawing(draw_scene(record_scene("attention", depth=9, expand=("*",), show=frozenset({"params", "views"}))))


@given(seed=st.integers(0, 10_000), depth=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_any_drawing_is_sound(seed: int, depth: int) -> None:
    """Every link's ends are drawn, boxes do not overlap, links pass through no box."""
    check_drawing(draw_scene(scene_of(random_graph(seed), depth=depth, show=frozenset({"params", "inputs"}))))


def test_the_backward_climbs_beside_the_forward(gpt: Drawing) -> None:
    places = dict(zip((box.id for box in gpt.scene.boxes), gpt.boxes, strict=True))
    for first, second in (("f/te", "f/h.*.fc"), ("f/h.*.fc", "f/head")):
        assert places[first].y < places[second].y
    for first, second in (("b/head", "b/h.*.fc"), ("b/h.*.fc", "b/te")):
        assert places[first].y > places[second].y
    for module in ("te", "h.*.qkv", "h.*.fc", "f", "head"):
        forward, backward = places[f"f/{module}"], places[f"b/{module}"]
        assert forward.x + forward.width < backward.x
        assert abs(forward.y - backward.y) < gpt.height / 3


def test_saved_values_stand_below_their_makers_and_above_their_readers(gpt: Drawing) -> None:
    rank = ranks(gpt.scene)
    for link in gpt.scene.links:
        if link.kind is LinkKind.SAVED:
            assert rank[link.source] < rank[link.target]


def test_frames_hold_their_boxes_and_no_others(gpt: Drawing) -> None:
    assert {gpt.scene.groups[frame.group].id for frame in gpt.frames} == {"f/h.*", "b/h.*"}
    for frame in gpt.frames:
        group = gpt.scene.groups[frame.group]
        for box, placed in zip(gpt.scene.boxes, gpt.boxes, strict=True):
            inside = (
                frame.x <= placed.x
                and placed.x + placed.width <= frame.x + frame.width
                and frame.y <= placed.y
                and placed.y + placed.height <= frame.y + frame.height
            )
            assert inside == (box.group == group.id)


def test_gpts_texts_do_not_overlap_and_fit_their_boxes(gpt: Drawing) -> None:
    labels: list[tuple[float, float, float, float]] = []
    for box, placed in zip(gpt.scene.boxes, gpt.boxes, strict=True):
        for number, line in enumerate(placed.lines):
            bold = box.kind is BoxKind.SAVED if number else box.kind in (BoxKind.OP, BoxKind.MODULE)
            size = (
                LABEL_SIZE if number == 0 and len(placed.lines) == 2 and box.kind is not BoxKind.SAVED else DETAIL_SIZE
            )
            width = text_width(line, size, bold=bold)
            assert width <= placed.width
            middle, top = placed.x + placed.width / 2, placed.y + placed.height * number / len(placed.lines)
            labels.append((middle - width / 2, top, width, placed.height / len(placed.lines)))
    labels += [(frame.x + 6, frame.y + 3, text_width(frame.text, DETAIL_SIZE), 10.0) for frame in gpt.frames]
    for position, (x, y, width, height) in enumerate(labels):
        for ox, oy, other_width, other_height in labels[:position]:
            apart = x + width <= ox or ox + other_width <= x or y + height <= oy + 0.01 or oy + other_height <= y + 0.01
            assert apart


def test_gpts_text_can_be_read_on_a4(gpt: Drawing) -> None:
    """The smallest text is 8 points or more when the picture, header and legend included, fills an A4 page."""
    head = aotcli.draw(record("gpt")).svg().split("viewBox=", 1)[1].split('"')[1].split()
    width, height = (float(each) * POINTS_PER_PIXEL for each in head[2:])
    room = [side - 2 * A4_MARGIN for side in A4_POINTS]
    scale = min(room[0] / width, room[1] / height)
    assert min(LABEL_SIZE, DETAIL_SIZE) * POINTS_PER_PIXEL * scale >= LEAST_POINTS
    assert gpt.width + 2 * MARGIN <= float(head[2])


def test_long_links_are_cut_into_stubs_that_name_the_other_end() -> None:
    drawing = draw_scene(chain(MOST_RANKS + 5))
    cut = [placed for placed in drawing.links if placed.far_points]
    assert [[stub.text for stub in placed.stubs] for placed in cut] == [[f"→ op {MOST_RANKS + 4}", "← op 0"]]
    check_drawing(drawing)
    assert not any(placed.far_points for placed in draw_scene(chain(10)).links)


def test_stubs_overlap_no_box() -> None:
    drawing = draw_scene(chain(MOST_RANKS + 5))
    for placed in drawing.links:
        for stub in placed.stubs:
            text = (stub.x, stub.y - 8, stub.width, 10)
            for box in drawing.boxes:
                apart = text[0] >= box.x + box.width or box.x >= text[0] + text[2]
                assert apart or text[1] >= box.y + box.height or box.y >= text[1] + text[3]


def test_what_hangs_off_a_source_is_pulled_towards_its_reader() -> None:
    scene = chain(12)
    constant = Box("f:c", BoxKind.OP, Side.FORWARD, "full")
    scene = Scene("chain", (*scene.boxes, constant), (*scene.links, Link("f:c", "f:9", LinkKind.FLOW)))
    rank = ranks(scene)
    assert rank["f:c"] == rank["f:9"] - 1


def test_a_circle_of_boxes_is_drawn() -> None:
    boxes = tuple(Box(f"f:{i}", BoxKind.OP, Side.FORWARD, f"op {i}") for i in range(3))
    links = tuple(Link(f"f:{i}", f"f:{(i + 1) % 3}", LinkKind.FLOW) for i in range(3))
    check_drawing(draw_scene(Scene("circle", boxes, links)))


def test_an_empty_scene_and_one_box() -> None:
    empty = draw_scene(Scene("empty", (), ()))
    assert (empty.boxes, empty.links, empty.frames) == ((), (), ())
    g = GraphBuilder()
    check_drawing(draw_scene(scene_of(g.build([g.pointwise("aten.relu.default", g.input("x", (2, 2)))]))))


def test_very_long_names_are_cut() -> None:
    g = GraphBuilder()
    x = g.pointwise("aten.relu.default", g.input("x", (2, 2)), module="m" * 500, name="n" * 500)
    drawing = draw_scene(scene_of(g.build([x]), depth=0, show=frozenset({"inputs"})))
    check_drawing(drawing)
    assert max(placed.width for placed in drawing.boxes) < 250
    assert any(line.endswith("…") for placed in drawing.boxes for line in placed.lines)


def test_fitted_text_is_no_wider_than_its_room() -> None:
    for text in ("", "h.3.fc", "w" * 80, "重み" * 40, "→→→→→→→→"):
        assert text_width(fit_width(text, 10, 60), 10) <= 60


def test_layout_work_grows_in_line_with_the_graph() -> None:
    """Twice the layers, not much more than twice the calls."""
    small, large = (scene_of(layered(n), fold=False, depth=9) for n in (300, 600))
    work = [count_calls(lambda scene=scene: draw_scene(scene)) for scene in (small, large)]
    assert work[1] < 2.6 * work[0]


def test_equal_scenes_have_equal_drawings() -> None:
    assert draw_scene(record_scene("unet")) == draw_scene(record_scene("unet"))


def test_overlap_sees_one() -> None:
    """The test's own test."""
    box = draw_scene(chain(1)).boxes[0]
    assert overlap(box, box)
