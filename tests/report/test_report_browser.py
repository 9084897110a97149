"""The whole report in a real browser: search, links, keys, themes, paper, odd names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import Opened
from builders import layered, sample_trace, two_matmuls
from report_pages import EVIL, evil_graph, gpt_like, text

from aotcli import api
from aotcli.ir.partition import Category
from aotcli.render.units import bytes_text, magnitude_text, percent_text

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
