"""Pictures: SVG, PNG and DOT of a scene, engines, what they say, and names that try to break out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pydot
import pytest
from builders import GraphBuilder, layered, sample_trace, two_matmuls
from golden_text import check_golden
from scenes import SVG, record, record_scene, svg_texts

import aotcli
from aotcli.analysis.scene_build import SceneOptions
from aotcli.api import draw_engine
from aotcli.errors import EnvironmentProblem, InputError
from aotcli.ir.trace import Trace
from aotcli.render.dot import render_dot
from aotcli.render.layout import draw_scene
from aotcli.render.svg import Caption, render_svg

EVIL = '<script>alert("1")</script>&\\"'


@pytest.fixture
def net() -> Trace:
    return sample_trace()


def evil_trace() -> Trace:
    g = GraphBuilder()
    w = g.param("primals_1", (4, 4), origin=f"{EVIL}.weight")
    x = g.input("x", (4, 4))
    y = g.matmul(x, w, (4, 4), module=EVIL, module_type=EVIL, source=f"{EVIL}.py:1")
    z = g.pointwise("aten.relu.default", y, module=f"{EVIL}.act", name="relu<b>", source=f"{EVIL}.py:2")
    return sample_trace(g.build([z]))


def titles(svg: str) -> dict[str, str]:
    """Tooltips by id."""
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    return {
        group.get("id", ""): found.text or "" for group in groups if (found := group.find(f"{SVG}title")) is not None
    }


def test_golden_svg(net: Trace) -> None:
    check_golden("draw.svg", aotcli.draw(net, strategy="save-all").svg())


def test_golden_dot(net: Trace) -> None:
    check_golden("draw.dot", aotcli.draw(net, strategy="save-all").pictures[0].dot())


def test_svg_is_one_document_that_fetches_nothing() -> None:
    svg = aotcli.draw(record("gpt")).svg()
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert "href" not in svg
    assert "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_header_says_model_plan_and_totals() -> None:
    shown = " ".join(svg_texts(aotcli.draw(record("gpt")).svg()))
    for text in ("gpt · mincut", "saves 6.09 GiB in 142 tensors", "recomputes 43 ops", "peak ≥", "level inductor"):
        assert text in shown


def test_legend_names_what_the_picture_has_and_nothing_else(net: Trace) -> None:
    assert "recomputed" in svg_texts(aotcli.draw(record("gpt")).svg())
    assert "recomputed" not in svg_texts(aotcli.draw(net, strategy="save-all").svg())


def test_every_box_has_an_id_and_a_title() -> None:
    picture = aotcli.draw(record("gpt")).pictures[0]
    found = titles(picture.svg())
    assert {box.id for box in picture.scene.boxes} <= set(found)
    fc = found["f/h.*.fc"]
    for text in ("aten.addmm.default", "8192×3072 f32", "1.12 GiB of results, 12 layers", "FLOP", "gpt.py:26"):
        assert text in fc
    saved = next(box.id for box in picture.scene.boxes if box.label == "mm")
    assert "why: " in found[saved]


def test_what_a_hue_says_a_shape_or_an_outline_says() -> None:
    """Forward round, backward cut corners, recomputed dashed, saved values pills: told apart without colour."""
    svg = aotcli.draw(record("gpt")).svg()
    root = ET.fromstring(svg)
    shapes: dict[str, set[str]] = {}
    for element in root.iter():
        names = (element.get("class") or "").split()
        if names and names[0] in ("fw", "bw", "re", "sv"):
            shape = f"{element.tag.removeprefix(SVG)} {'pill' if element.get('rx') == '11' else 'corner'}"
            shapes.setdefault(names[0], set()).add(shape if element.get("width") != "22" else "")
    assert {name: shape - {""} for name, shape in shapes.items()} == {
        "fw": {"rect corner"},
        "bw": {"path corner"},
        "re": {"path corner"},
        "sv": {"rect pill"},
    }
    assert "stroke-dasharray" in svg.split(".re{", 1)[1].split("}", 1)[0]


def test_names_cannot_break_out() -> None:
    trace = evil_trace()
    for view in (SceneOptions(), SceneOptions(depth=9, expand=("*",), show=frozenset({"params", "inputs"}))):
        picture = aotcli.draw(trace, view=view).pictures[0]
        assert "<script>" not in picture.svg()
        assert any("<script>" in text for text in svg_texts(picture.svg()))
        assert pydot.graph_from_dot_data(picture.dot()) is not None
        assert "<script>" not in picture._repr_html_()


def test_control_characters_are_no_xml() -> None:
    g = GraphBuilder()
    x = g.pointwise("aten.relu.default", g.input("x", (2, 2)), module="a\x00\x1bb", source="\x07.py:1")
    ET.fromstring(aotcli.draw(sample_trace(g.build([x]))).svg())


def test_dot_is_valid_and_has_a_cluster_for_each_open_module() -> None:
    scene = record_scene("gpt")
    (graph,) = pydot.graph_from_dot_data(render_dot(scene, "gpt")) or []
    clusters = graph.get_subgraph_list()
    assert [each.get_label().strip('"') for each in clusters] == ["h.* ×12 · Block", "h.* ×12 · Block"]
    nodes = {node.get_name().strip('"') for part in (graph, *clusters) for node in part.get_node_list()}
    assert {box.id for box in scene.boxes} <= nodes
    assert len(graph.get_edge_list()) == len(scene.links)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", ["gpt", "unet"])
def test_graphviz_takes_the_dot(name: str) -> None:
    text = render_dot(record_scene(name))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, timeout=60, check=True)
    assert done.stderr == b""


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_engine_dot_places_the_same_boxes_and_links() -> None:
    result = aotcli.draw(record("gpt"), engine="dot", time_limit_s=60)
    own = draw_scene(result.pictures[0].scene)
    drawing = result.pictures[0].drawing
    assert result.notes == ()
    assert [(box.width, box.height) for box in drawing.boxes] == [(box.width, box.height) for box in own.boxes]
    assert [box.y for box in drawing.boxes] != [box.y for box in own.boxes]
    for placed in drawing.links:
        link = drawing.scene.links[placed.link]
        for end, (x, y) in ((link.source, placed.points[0]), (link.target, placed.points[-1])):
            box = drawing.boxes[drawing.scene.box_index[end]]
            assert box.x - 3 <= x <= box.x + box.width + 3
            assert box.y - 3 <= y <= box.y + box.height + 3
    ET.fromstring(result.svg())


FAKES = {
    "slow": ("sleep 30", "longer than 0.3 s"),
    "failing": ("echo 'syntax error in line 1' >&2; exit 1", "syntax error in line 1"),
    "odd": ('echo \'{"bb": "0,0,1,1"}\'', "could not be used"),
    "no json": ("echo hello", "could not be used"),
}


@pytest.mark.parametrize("fake", FAKES)
def test_engine_dot_falls_back(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, net: Trace) -> None:
    script, why = FAKES[fake]
    program = tmp_path / "dot"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(draw_engine.shutil, "which", lambda name: str(program))
    result = aotcli.draw(net, engine="dot", time_limit_s=0.3)
    assert len(result.notes) == 1
    assert why in result.notes[0]
    assert result.svg() == aotcli.draw(net).svg()


def test_engine_dot_without_graphviz(monkeypatch: pytest.MonkeyPatch, net: Trace) -> None:
    monkeypatch.setattr(draw_engine.shutil, "which", lambda name: None)
    (note,) = aotcli.draw(net, engine="dot").notes
    assert "apt install graphviz" in note


def test_png(net: Trace) -> None:
    pytest.importorskip("resvg_py")
    small, large = (aotcli.draw(each).pictures[0].png() for each in (net, record("gpt")))
    assert small.startswith(b"\x89PNG\r\n\x1a\n")
    assert b"Software\0aotcli" in small[:80]
    assert len(large) > 4 * len(small) // 2


def test_png_has_text(net: Trace) -> None:
    """Without a font, a renderer leaves text out without a word."""
    pytest.importorskip("resvg_py")
    from aotcli.render.png import render_png

    empty = f'<svg xmlns="{SVG[1:-1]}" width="60" height="20"></svg>'
    text = (
        f'<svg xmlns="{SVG[1:-1]}" width="60" height="20"><text y="15" font-family="Lato,sans-serif">gelu</text></svg>'
    )
    assert render_png(text) != render_png(empty)


def test_png_of_a_picture_that_is_too_large() -> None:
    pytest.importorskip("resvg_py")
    trace = sample_trace(layered(400))
    picture = aotcli.draw(trace, view=SceneOptions(depth=9, fold=False, expand=("*",))).pictures[0]
    with pytest.raises(InputError, match="too large for PNG"):
        picture.png()


def test_png_without_the_wheel_says_how_to_get_it(net: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(EnvironmentProblem) as caught:
        aotcli.draw(net).pictures[0].png()
    assert "pip install 'aotcli[png]'" in caught.value.fix


def test_several_regions_are_a_picture_each() -> None:
    trace = sample_trace(two_matmuls(), layered(3))
    result = aotcli.draw(trace)
    assert len(result.pictures) == 2
    assert len(aotcli.draw(trace, region="1").pictures) == 1
    with pytest.raises(InputError, match="--region nine"):
        aotcli.draw(trace, region="nine")


def test_a_step_without_backward() -> None:
    g = GraphBuilder()
    trace = sample_trace(g.build([g.pointwise("aten.relu.default", g.input("x", (2, 2)))]))
    assert "no backward" in " ".join(svg_texts(aotcli.draw(trace).svg()))
    with pytest.raises(InputError, match="has no backward"):
        aotcli.draw(trace, view=SceneOptions(only="backward"))


def test_an_empty_graph_is_an_empty_picture() -> None:
    g = GraphBuilder()
    svg = aotcli.draw(sample_trace(g.build([g.input("x", (2, 2))]))).svg()
    assert any("nothing to draw" in text for text in svg_texts(svg))
    ET.fromstring(svg)


@pytest.mark.parametrize(
    "view", [SceneOptions(only="sideways"), SceneOptions(depth=-1), SceneOptions(show=frozenset({"parms"}))]
)
def test_a_view_that_there_is_not(view: SceneOptions, net: Trace) -> None:
    with pytest.raises(InputError) as caught:
        aotcli.draw(net, view=view)
    assert caught.value.fix


def test_an_engine_that_there_is_not(net: Trace) -> None:
    with pytest.raises(InputError, match="--engine dott"):
        aotcli.draw(net, engine="dott")


def test_notebooks_show_pictures_and_tables(net: Trace) -> None:
    result = aotcli.partition(net)
    for each in (aotcli.draw(net), result, net, evil_trace(), aotcli.partition(evil_trace())):
        html: Any = each._repr_html_()
        assert html.startswith("<")
        assert "<script" not in html
    assert "data:image/svg+xml;base64," in result._repr_html_()
    assert "mincut" in result._repr_html_()


def test_the_legend_never_hangs_on_the_pictures_width() -> None:
    drawing = draw_scene(record_scene("attention"))
    for width in (1.0, 480.0, 1e6):
        import dataclasses

        ET.fromstring(render_svg(dataclasses.replace(drawing, width=width), Caption("x")))
