"""The report's graph in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser import Opened
from builders import sample_trace, two_matmuls
from report_pages import gpt_like, text

from aotcli import api
from aotcli.ir.partition import Category

SHOWN = "() => aotcli.graph.arrangement.shown.length"
LABELS = "() => aotcli.graph.arrangement.items.map((item) => aotcli.report.strings[item.label] ?? '')"
# Boxes overlap where both show, and neither is inside the other.
OVERLAPS = """() => {
  const { items } = aotcli.graph.arrangement;
  const beside = (a, b) => a.x + a.w <= b.x + 0.5 || a.y + a.h <= b.y + 0.5;
  const found = [];
  const check = (boxes) => boxes.forEach((a, place) =>
    boxes.slice(place + 1).forEach((b) => beside(a, b) || beside(b, a) || found.push([a, b])));
  check(items);
  for (const item of items) {
    if (!item.open) continue;
    check(item.leaves);
    for (const leaf of item.leaves) {
      const within = leaf.x >= item.x && leaf.y >= item.y && leaf.x + leaf.w <= item.x + item.w + 0.5
        && leaf.y + leaf.h <= item.y + item.h + 0.5;
      if (!within) found.push([item, leaf]);
    }
  }
  return found.length;
}"""
CHOSEN = """() => [...aotcli.graph.chosen.items].map(([item, role]) =>
  [role, aotcli.graph.nodesOf(item).map((node) => aotcli.regions[aotcli.state.region].name(node))])"""
# The middle of a box on the page (of an open one, its head), by the title of the box; without one, of the first that
# can be opened.
PLACE = """(wanted) => {
  const { graph, report } = aotcli;
  const item = graph.arrangement.items.find((each) => each.box >= 0
    && (wanted ? report.strings[graph.picture.boxes.title[each.box]] === wanted : each.inner >= 0));
  const at = graph.toScreen({ x: item.x + item.w / 2, y: item.y + (item.open ? 8 : item.h / 2) });
  const canvas = graph.canvas.getBoundingClientRect();
  return [canvas.left + at.x, canvas.top + at.y];
}"""
# The title of a box that stands for saved values.
SAVED_TITLE = """() => { const { graph, report } = aotcli;
  const box = graph.picture.boxes.kind.findIndex((kind) => graph.data.kinds[kind] === 'saved');
  return report.strings[graph.picture.boxes.title[box]]; }"""
OPEN_SOME = """([step, count]) => {
  const boxes = [...Array(count).keys()].filter((box) => aotcli.graph.picture.boxes.inner[box] >= 0);
  aotcli.graph.show(new Set(boxes.filter((_, place) => place % step === 0)), new Set());
}"""


class TestGraph:
    def test_open_and_close_a_module(self, show: Callable[..., Opened]) -> None:
        opened = show()
        before = opened.run(SHOWN)
        opened.page.mouse.dblclick(*opened.run(PLACE))
        inside = opened.run("() => aotcli.graph.arrangement.leaves.length")
        assert inside > 0
        assert opened.run(SHOWN) == before + inside
        assert opened.run(OVERLAPS) == 0
        opened.screenshot("graph-open-module")
        opened.page.mouse.click(*opened.run(PLACE))
        assert opened.run(SHOWN) == before

    @pytest.mark.parametrize("folded", [True, False])
    def test_nothing_overlaps_whatever_is_open(self, show: Callable[..., Opened], folded: bool) -> None:
        opened = show()
        if not folded:
            opened.page.click("#graph-layers")
        count = opened.run("() => aotcli.graph.picture.size")
        for step in (1, 2, 3):
            opened.run(OPEN_SOME, [step, count])
            assert opened.run(OVERLAPS) == 0
        for path in opened.run("() => [...new Set(aotcli.graph.picture.groups.path)]"):
            opened.run("(path) => aotcli.graph.show(new Set(), new Set([path]))", path)
            assert opened.run(OVERLAPS) == 0

    def test_open_all_shows_every_op_of_both_halves(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        partition = api.partition(trace, alternatives=False).plan.partitions[0]
        opened = show(trace)
        opened.page.click("#graph-layers")
        opened.page.click("#graph-open")
        names = opened.run(
            """() => aotcli.graph.arrangement.shown.filter((item) => !item.open && ['op', 'module']
              .includes(aotcli.graph.data.kinds[item.kind])).flatMap((item) => aotcli.graph.nodesOf(item))
              .map((node) => aotcli.regions[0].name(node))"""
        )
        graph = trace.regions[0]
        views = {node.name for node in graph.nodes if node.target == "aten.t.default"}
        wanted = [*partition.forward_nodes, *partition.backward_nodes]
        assert sorted(names) == sorted(name for name in wanted if name not in views)
        opened.screenshot("graph-every-op")

    def test_layers_once_or_each(self, show: Callable[..., Opened]) -> None:
        opened = show()
        once = opened.run(SHOWN)
        opened.page.focus("#graph-canvas")
        opened.page.keyboard.press("l")
        assert opened.run(SHOWN) > 1.3 * once
        opened.page.keyboard.press("l")
        assert opened.run(SHOWN) == once

    def test_close_all_and_reset(self, show: Callable[..., Opened]) -> None:
        opened = show()
        before = opened.run(SHOWN)
        opened.page.click("#graph-close")
        assert opened.run(SHOWN) < before
        assert opened.run("() => aotcli.graph.arrangement.items.filter((item) => item.group >= 0).length") >= 2
        opened.screenshot("graph-closed")
        opened.page.click("#graph-reset")
        assert opened.run(SHOWN) == before

    def test_pan_zoom_and_fit(self, show: Callable[..., Opened]) -> None:
        opened = show()
        place = "() => ({ ...aotcli.graph.place })"
        first = opened.run(place)
        box = opened.page.locator("#graph-canvas").bounding_box()
        opened.page.mouse.move(box["x"] + 30, box["y"] + 200)
        opened.page.mouse.wheel(0, -400)
        opened.settle()
        assert opened.run(place)["scale"] > first["scale"]
        opened.page.mouse.down()
        opened.page.mouse.move(box["x"] + 90, box["y"] + 260, steps=4)
        opened.page.mouse.up()
        moved = opened.run(place)
        opened.page.focus("#graph-canvas")
        for key in ("ArrowDown", "+", "-", "ArrowRight"):
            opened.page.keyboard.press(key)
        assert opened.run(place) != moved
        opened.page.click("#graph-fit")
        left, top, right, bottom = opened.run(
            """() => { const { graph } = aotcli; const { left, width, height } = graph.arrangement;
              const a = graph.toScreen({ x: left, y: 0 }); const b = graph.toScreen({ x: left + width, y: height });
              return [a.x, a.y, b.x, b.y]; }"""
        )
        assert (left, top) >= (0, 0)
        assert right <= box["width"]
        assert bottom <= box["height"]

    def test_a_selected_value_shows_its_producers_and_backward_users(self, show: Callable[..., Opened]) -> None:
        trace = sample_trace(two_matmuls(), breaks=())
        saved = api.partition(trace, alternatives=False).plan.partitions[0].saved
        value = next(each for each in saved if each.category is Category.ACTIVATION)
        opened = show(trace)
        opened.run("(name) => aotcli.select(aotcli.regions[0].nodes.name.indexOf(name))", value.name)
        chosen = opened.run(CHOSEN)
        core = {name for role, names in chosen if role == "core" for name in names}
        near = {name for role, names in chosen if role == "near" for name in names}
        assert value.name in core
        graph = trace.regions[0]
        readers = {graph.nodes[p].name for p in graph.users_of[graph.index[value.name]]}
        behind = {graph.nodes[p].name for name in readers for p in graph.users_of[graph.index[name]]}
        assert near & (readers | behind)
        opened.screenshot("graph-selected")

    def test_click_selects_and_empty_space_drops(self, show: Callable[..., Opened]) -> None:
        opened = show(sample_trace(two_matmuls(), breaks=()))
        opened.page.mouse.click(*opened.run(PLACE, "relu of act"))
        assert opened.page.locator("#inspector").is_visible()
        box = opened.page.locator("#graph-canvas").bounding_box()
        opened.page.mouse.click(box["x"] + 4, box["y"] + 4)
        assert opened.page.locator("#inspector").is_hidden()

    def test_pointer_tells_what_a_box_is(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.mouse.move(*opened.run(PLACE))
        tip = text(opened, "#graph-tip")
        assert "fc" in tip.splitlines()[0]
        assert "double-click to open" in tip
