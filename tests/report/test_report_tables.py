"""The tables and charts of the report in a real browser, and how they lead to the graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from browser import Opened
from builders import layered, sample_trace
from report_pages import forward_only, gpt_like, rows, text

from aotcli import api
from aotcli.render.units import bytes_text, magnitude_text, percent_text

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
        assert opened.run("() => aotcli.graph.arrangement.shown.length") == 0
        assert text(opened, "#graph-empty") == "This region has no op to draw."


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
