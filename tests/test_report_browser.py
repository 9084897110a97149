"""The report in a real browser: each of its parts, by what a reader would do; nothing fails and nothing is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Opened, open_browser
from builders import layered, sample_trace, two_matmuls
from test_report import EVIL, evil_graph, forward_only

from aotcli import api
from aotcli.ir.partition import Category
from aotcli.ir.trace import Trace
from aotcli.render.units import bytes_text, magnitude_text, percent_text

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the report of a trace; at the end of the test, that nothing went wrong."""
    opened: list[Opened] = []

    def run(
        trace: Trace | None = None, *, address: str = "", dark: bool = False, width: int = 1440, **options: Any
    ) -> Opened:
        path = tmp_path / f"report{len(opened)}.html"
        path.write_text(api.report(trace or gpt_like(), **options).html(), encoding="utf-8")
        opened.append(Opened(browser, path, address=address, dark=dark, width=width))
        return opened[-1]

    yield run
    for each in opened:
        each.close()


def gpt_like() -> Trace:
    """Five equal layers: folded in the first view, apart in the second."""
    return sample_trace(layered(5), breaks=())


def text(opened: Opened, selector: str) -> str:
    return opened.page.inner_text(selector)


def rows(opened: Opened, panel: str) -> list[list[str]]:
    """The cells of a table's rows."""
    script = """(panel) => [...document.querySelectorAll(`#panel-${panel} tbody tr`)].map((row) =>
      [...row.cells].map((cell) => cell.innerText.trim()))"""
    found: list[list[str]] = opened.run(script, panel)
    return found


class TestVerdict:
    def test_first_screen(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        plan = api.partition(trace, alternatives=False).plan
        opened = show(trace, command="aotcli report net.py -o net.html")
        shown = text(opened, "#verdict")
        for part in (
            bytes_text(plan.saved_bytes),
            f"in {plan.saved_tensors} tensors",
            "192 B",
            f"≥ {bytes_text(plan.peak_bytes)}",
            magnitude_text(plan.forward_flops + plan.backward_flops, "FLOP"),
            "cpu",
            "level",
            "2.13.0",
            "settings",
        ):
            assert part in shown
        opened.page.click("details.how summary")
        assert "aotcli report net.py -o net.html" in text(opened, "details.how")
        assert "aotcli.compile(model" in text(opened, "details.how")
        assert opened.page.title() == "net · mincut · aotcli"
        opened.screenshot("verdict-light")

    def test_a_piece_of_the_strip_selects_its_row(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.click("#made-of .strip button >> nth=0")
        assert opened.page.locator("#panel-saved tr.picked").count() == 1
        assert opened.run("() => aotcli.state.marked.length") == 5

    def test_without_eager(self, show: Callable[..., Opened]) -> None:
        assert "eager not measured" in text(show(sample_trace(layered(2), eager=None)), "#headline")

    def test_without_a_backward(self, show: Callable[..., Opened]) -> None:
        opened = show(sample_trace(forward_only()))
        assert "Nothing" in text(opened, "#headline")
        assert "no backward" in text(opened, "#panel-saved")
        for tab in ("memory", "modules", "lines", "tradeoff"):
            opened.page.click(f"#tab-{tab}")
        opened.screenshot("forward-only")

    def test_one_node(self, show: Callable[..., Opened]) -> None:
        graph = forward_only()
        nodes = (graph.nodes[0], dataclasses.replace(graph.nodes[-1], args=((),)))
        opened = show(sample_trace(dataclasses.replace(graph, nodes=nodes, num_forward_outputs=0)))
        assert opened.run(SHOWN) == 0
        assert text(opened, "#graph-empty") == "This region has no op to draw."


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


class TestSaved:
    def test_rows_and_their_sum(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        plan = api.partition(trace, alternatives=False).plan
        opened = show(trace)
        assert bytes_text(plan.saved_bytes) in text(opened, "#panel-saved .count")
        first = rows(opened, "saved")[0]
        assert first[:2] == [bytes_text(5 * 512), percent_text(5 * 512, plan.saved_bytes)]
        assert first[3:5] == ["h.*.fc", "mm"]

    def test_sort(self, show: Callable[..., Opened]) -> None:
        opened = show(sample_trace(layered(4), breaks=()))
        opened.page.click("#panel-saved .controls button")  # one row for each value
        heads = opened.page.locator("#panel-saved thead th")
        for column in range(8):
            heads.nth(column).locator("button").click()
            first = heads.nth(column).get_attribute("aria-sort")
            cells = [row[column] for row in rows(opened, "saved")]
            heads.nth(column).locator("button").click()
            turned = [row[column] for row in rows(opened, "saved")]
            assert {first, heads.nth(column).get_attribute("aria-sort")} == {"ascending", "descending"}
            assert sorted(cells) == sorted(turned)
            # Equal cells keep their order, so the ends tell.
            assert (cells[0], cells[-1]) == (turned[-1], turned[0])

    def test_filter(self, show: Callable[..., Opened]) -> None:
        opened = show()
        search = opened.page.locator("#panel-saved input")
        search.fill("h.*.fc")
        assert {row[3] for row in rows(opened, "saved")} == {"h.*.fc"}
        search.fill("nothing like that")
        assert rows(opened, "saved") == [["No saved value matches “nothing like that”."]]
        opened.page.locator("#panel-saved select").select_option("kept")
        search.fill("")
        assert all(row[6].split(",")[0] in ("parameter", "input", "output") for row in rows(opened, "saved"))

    def test_row_and_graph_are_linked(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.click("#panel-saved tbody tr .fold")
        member = opened.page.locator("#panel-saved tbody tr.member").nth(1)
        name = member.locator("td").nth(4).inner_text()
        member.click()
        assert opened.run("() => aotcli.regions[0].name(aotcli.state.node)") == name
        assert name in {each for _, names in opened.run(CHOSEN) for each in names}
        assert text(opened, "#inspector code") == name
        opened.page.keyboard.press("Escape")
        assert opened.page.locator("#panel-saved tr.picked").count() == 0
        opened.page.mouse.click(*opened.run(PLACE, opened.run(SAVED_TITLE)))
        assert opened.page.locator("#panel-saved tr.picked").count() > 0

    def test_keys(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.focus("#panel-saved tbody tr")
        opened.page.keyboard.press("ArrowDown")
        opened.page.keyboard.press("ArrowRight")
        assert opened.page.locator("#panel-saved tr.member").count() > 1
        opened.page.keyboard.press("Enter")
        assert opened.run("() => aotcli.state.marked.length") > 1


class TestMemory:
    def test_chart_is_the_timeline(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        found = api.report(trace, front=False).report.regions[0].lifetimes.timeline
        opened = show(trace)
        assert opened.run("() => Array.from(aotcli.chart.memory.live_bytes)") == list(found.live_bytes)
        assert f"{bytes_text(found.peak_bytes)} live at the peak" in self.live(opened)
        opened.screenshot("memory")

    def live(self, opened: Opened) -> str:
        opened.page.click("#tab-memory")
        return text(opened, "#panel-memory .controls")

    def test_click_shows_what_is_live_and_the_node(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        opened = show(trace)
        opened.page.locator("#memory-canvas").scroll_into_view_if_needed()
        box = opened.page.locator("#memory-canvas").bounding_box()
        opened.page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.6)
        step, node = opened.run("() => [aotcli.state.step, aotcli.state.node]")
        report = api.report(trace, front=False).report.regions[0]
        assert report.graph.nodes[node].name == report.lifetimes.timeline.names[step]
        assert len(rows(opened, "memory")) == len(report.lifetimes.live_at(step))
        assert bytes_text(report.lifetimes.timeline.live_bytes[step]) in self.live(opened)
        opened.page.click("#panel-memory tbody tr")
        assert opened.run("() => aotcli.state.node") >= 0
        opened.page.click("text=Go to the peak")
        assert "at the peak" in self.live(opened)

    def test_keys(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.focus("#memory-canvas")
        opened.page.keyboard.press("Home")
        assert opened.run("() => aotcli.state.step") == 0
        opened.page.keyboard.press("ArrowRight")
        assert opened.run("() => aotcli.state.step") == 1
        opened.page.keyboard.press("m")
        assert opened.run("() => [aotcli.state.step, aotcli.state.tab]") == [-1, "memory"]

    def test_pointer_tells_the_op(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.locator("#memory-canvas").scroll_into_view_if_needed()
        box = opened.page.locator("#memory-canvas").bounding_box()
        opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
        assert "live at op" in text(opened, "#memory-tip")


class TestRollups:
    def test_modules(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        opened = show(trace)
        opened.page.click("#tab-modules")
        folded = rows(opened, "modules")
        assert folded[0][1] == bytes_text(api.partition(trace, alternatives=False).saved_bytes)
        assert any("h.*.fc" in row[0] and "×5" in row[0] for row in folded)
        opened.page.click("#panel-modules .controls button >> nth=0")
        assert sum("h.3.fc" in row[0] for row in rows(opened, "modules")) == 1
        opened.page.click("#panel-modules .controls button >> nth=2")
        assert len(rows(opened, "modules")) < len(folded)
        opened.screenshot("modules")

    def test_a_module_marks_its_saved_values(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.click("#tab-modules")
        opened.page.click("#panel-modules tbody tr:has-text('h.*.fc')")
        modules = opened.run("() => aotcli.state.marked.map((node) => aotcli.regions[0].module(node))")
        assert modules
        assert all(module.endswith(".fc") for module in modules)

    def test_lines_with_and_without_their_text(self, show: Callable[..., Opened]) -> None:
        graph = layered(3)
        nodes = tuple(
            dataclasses.replace(node, code="h = fc(x)" if node.source == "net.py:7" else None) for node in graph.nodes
        )
        trace = sample_trace(dataclasses.replace(graph, nodes=nodes), breaks=())
        opened, told = show(trace), show(trace, with_source=True)
        for each in (opened, told):
            each.page.click("#tab-lines")
        assert "net.py:7" in text(opened, "#panel-lines")
        assert "h = fc(x)" not in text(opened, "#panel-lines")
        assert "h = fc(x)" in text(told, "#panel-lines")
        told.page.click("#panel-lines tbody tr")
        assert told.run("() => aotcli.state.marked.length + (aotcli.state.node >= 0 ? 1 : 0)") > 0


class TestTradeOff:
    def test_front_and_points(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        opened = show(trace, command="aotcli report net.py --strategy mincut")
        opened.page.click("#tab-tradeoff")
        found = api.report(trace).report.trade_off
        assert found is not None
        assert opened.page.locator("#tradeoff-chart .corner").count() == len(found.corners)
        labels = {corner.arguments for corner in found.corners}
        assert len(rows(opened, "tradeoff")) == len(found.points) + len(labels)
        opened.page.click("#panel-tradeoff tbody tr:has-text('recompute-all')")
        assert "aotcli partition net.py --strategy recompute-all" in text(opened, "#tradeoff-pick")
        assert "fewer" in text(opened, "#tradeoff-pick")
        opened.page.click("#panel-tradeoff tbody tr:has-text('save-all')")
        marked = opened.run("() => aotcli.state.marked.map((node) => aotcli.regions[0].name(node))")
        wanted = next(point for point in found.points if point.label == "save-all").saved[0]
        assert sorted(marked) == sorted(wanted)
        for axis in ("recompute_flops", "moved_bytes", "peak_bytes"):
            opened.page.locator("#panel-tradeoff select").select_option(axis)
            assert opened.page.locator("#tradeoff-chart .corner").count() == 0
            assert opened.page.locator("#tradeoff-chart .point").count() == len(found.points)
        opened.screenshot("tradeoff")

    def test_left_out(self, show: Callable[..., Opened]) -> None:
        opened = show(front=False)
        opened.page.click("#tab-tradeoff")
        assert "No trade-off was computed" in text(opened, "#panel-tradeoff")


class TestChanges:
    def test_against_another_step(self, show: Callable[..., Opened]) -> None:
        opened = show(sample_trace(layered(4), breaks=()), against=sample_trace(layered(3), breaks=()))
        opened.page.click("#tab-changes")
        assert "+1.0 KiB" in text(opened, "#changes")
        assert opened.page.locator("#graph-legend").inner_text().count("added") == 1
        opened.page.click("#changes tbody tr >> nth=0")
        assert opened.run("() => aotcli.state.marked.length + (aotcli.state.node >= 0 ? 1 : 0)") > 0
        assert opened.run(OVERLAPS) == 0
        opened.screenshot("changes")

    def test_there_is_no_such_tab_otherwise(self, show: Callable[..., Opened]) -> None:
        assert show().page.locator("#tab-changes").count() == 0


class TestSearch:
    def test_finds_names_ops_modules_shapes_and_lines(self, show: Callable[..., Opened]) -> None:
        opened = show()
        for query, some in (
            ("mm_3", "mm_3"),
            ("gelu", "gelu"),
            ("h.2.fc", "h.2.fc"),
            ("f32 8×16", "8×16"),
            ("net.py:9", "net.py:9"),
            ("op:mm module:h.1", "h.1"),
        ):
            opened.page.keyboard.press("Escape")
            opened.page.keyboard.press("/")
            opened.page.fill("#search", query)
            hits = opened.page.locator("#search-results .hit").all_inner_texts()
            assert hits
            assert all(some in hit for hit in hits)
            opened.page.keyboard.press("ArrowDown")
            opened.page.keyboard.press("ArrowUp")
            opened.page.keyboard.press("Enter")
            assert opened.run("() => aotcli.state.node") >= 0
            assert opened.page.locator("#inspector").is_visible()

    def test_kinds(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        saved = api.partition(trace, alternatives=False).plan.partitions[0].saved
        opened = show(trace)
        opened.page.fill("#search", "is:saved")
        opened.page.click("text=mark all in the graph")
        marked = opened.run("() => aotcli.state.marked.map((node) => aotcli.regions[0].name(node))")
        assert sorted(marked) == sorted(value.name for value in saved if value.category is Category.ACTIVATION)

    def test_nothing_matches(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.fill("#search", "there is no such op")
        assert text(opened, "#search-results") == "No node matches “there is no such op”."
        opened.page.keyboard.press("Enter")
        opened.page.keyboard.press("Escape")
        assert opened.page.input_value("#search") == ""

    def test_deep_link(self, show: Callable[..., Opened]) -> None:
        trace = gpt_like()
        value = api.partition(trace, alternatives=False).plan.partitions[0].saved[0]
        opened = show(trace, address=f"#node={value.id}&tab=memory")
        assert opened.run("() => [aotcli.regions[0].name(aotcli.state.node), aotcli.state.tab]") == [
            value.name,
            "memory",
        ]
        opened.page.click("#tab-saved")
        assert opened.page.url.endswith(f"#node={value.id}")

    def test_deep_link_to_nothing(self, show: Callable[..., Opened]) -> None:
        opened = show(address="#node=99999&region=7")
        assert "no node 99999" in text(opened, "#message")
        assert opened.run("() => aotcli.state.node") == -1


class TestWholePage:
    def test_several_regions(self, show: Callable[..., Opened]) -> None:
        other = dataclasses.replace(two_matmuls(), name="region1")
        opened = show(sample_trace(layered(3), other), address="#region=1")
        assert opened.page.input_value("#region") == "1"
        labels = opened.run(LABELS)
        opened.page.locator("#region").select_option("0")
        assert opened.run(LABELS) != labels
        assert opened.run("() => aotcli.state.region") == 0
        opened.screenshot("regions")

    def test_names_are_texts(self, show: Callable[..., Opened]) -> None:
        trace = sample_trace(evil_graph(), breaks=())
        trace = dataclasses.replace(trace, model=dataclasses.replace(trace.model, name=EVIL), notes=(EVIL,))
        opened = show(trace)
        assert text(opened, "#model") == EVIL
        assert EVIL in text(opened, ".notes")
        for tab in ("modules", "lines", "memory", "tradeoff", "saved"):
            opened.page.click(f"#tab-{tab}")
        assert opened.page.locator("#panel-saved td", has_text="<script>").count() > 0
        opened.page.click("#graph-open")
        opened.page.click("#panel-saved tbody tr")
        assert "<script>" in text(opened, "#inspector")
        assert opened.page.locator("img").count() == 0
        opened.screenshot("names")

    @pytest.mark.parametrize("width", [1440, 390])
    def test_long_names_break_no_layout(self, show: Callable[..., Opened], width: int) -> None:
        name = "encoder" * 60
        trace = sample_trace(evil_graph(name), breaks=())
        trace = dataclasses.replace(trace, model=dataclasses.replace(trace.model, name=name), notes=(name,))
        opened = show(trace, width=width)
        opened.page.click("#panel-saved tbody tr")
        assert opened.run("() => document.documentElement.scrollWidth <= window.innerWidth")
        opened.screenshot(f"long-names-{width}")

    def test_nothing_can_be_loaded(self, show: Callable[..., Opened]) -> None:
        opened = show()
        refused = opened.run("() => fetch('http://127.0.0.1:9/').then(() => 'loaded', (error) => String(error))")
        assert "Failed to fetch" in refused
        assert all("Content Security Policy" in problem for problem in opened.problems)
        assert opened.problems
        opened.problems.clear()

    def test_keys(self, show: Callable[..., Opened]) -> None:
        opened = show()
        opened.page.keyboard.press("?")
        assert opened.page.locator("dialog").is_visible()
        opened.screenshot("keys")
        opened.page.click("dialog button")
        assert opened.page.locator("dialog").is_hidden()
        opened.page.keyboard.press("3")
        assert opened.run("() => aotcli.state.tab") == "modules"
        opened.page.keyboard.press("]")
        assert opened.run("() => aotcli.regions[0].flags(aotcli.state.node) & 4")
        opened.page.focus("#graph-canvas")
        for key in ("b", "p", "u", "Enter", "Shift+E", "Shift+C", "0"):
            opened.page.keyboard.press(key)
        opened.page.keyboard.press("Escape")
        assert opened.run("() => aotcli.state.node") == -1
        before = opened.run("() => document.documentElement.dataset.theme")
        opened.page.keyboard.press("t")
        assert opened.run("() => document.documentElement.dataset.theme") != before

    @pytest.mark.parametrize(("width", "dark"), [(1920, False), (1280, True), (820, False), (390, True)])
    def test_fits_the_window(self, show: Callable[..., Opened], width: int, dark: bool) -> None:
        opened = show(width=width, dark=dark)
        assert opened.run("() => document.documentElement.dataset.theme") == ("dark" if dark else "light")
        assert opened.run("() => document.documentElement.scrollWidth <= window.innerWidth")
        opened.screenshot(f"page-{width}-{'dark' if dark else 'light'}", full=True)

    def test_prints_all_tables_on_white(self, show: Callable[..., Opened], tmp_path: Path) -> None:
        opened = show(dark=True)
        pages = opened.page.pdf(format="A4", path=tmp_path / "report.pdf")
        assert pages.startswith(b"%PDF")
        opened.page.emulate_media(media="print")
        for title in ("Saved values", "Live memory", "By module", "By line", "Trade-off"):
            assert opened.page.locator(".print-title", has_text=title).is_visible()
        assert opened.run("() => document.documentElement.dataset.theme") == "dark"

    def test_numbers_read_as_in_python(self, show: Callable[..., Opened]) -> None:
        opened = show()
        sizes = [
            0,
            1,
            1023,
            1024,
            1025,
            1 << 20,
            (1 << 20) - 30,
            (1 << 30) - 1,
            9 << 28,
            (9 << 27),
            1 << 44,
            *(3**n for n in range(28)),
        ]
        assert opened.run("(sizes) => sizes.map(aotcli.texts.bytesText)", sizes) == [bytes_text(size) for size in sizes]
        numbers = [0, 1, 999, 9994, 9995, 123456, 10**7, 5 * 10**9, 1.25e13, 2.5e15, 7e18]
        shown = opened.run("(numbers) => numbers.map((each) => aotcli.texts.magnitudeText(each, 'FLOP'))", numbers)
        assert shown == [magnitude_text(number, "FLOP") for number in numbers]
        shares = [(0, 5), (1, 3), (1, 8), (1, 16), (1, 3000), (7, 7), (0, 0)]
        shown = opened.run("(shares) => shares.map(([a, b]) => aotcli.texts.percentText(a, b))", shares)
        assert shown == [percent_text(*share) for share in shares]
