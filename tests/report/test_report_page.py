"""The file of a report: nothing in it can run but its own script, and nothing can be loaded."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from builders import GraphBuilder, layered, sample_trace
from report_pages import EVIL, data, embedded, evil_graph

from aotcli import api
from aotcli.errors import InputError, OutputError, StrategyError
from aotcli.ir.trace import Trace
from aotcli.render.report.page import script_text

ROOT = Path(__file__).parents[2]


class Elements(HTMLParser):
    """Tags of a page, in order, and the texts of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.attributes: list[tuple[str, str, str | None]] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("type") or tag
        self.tags.append(kind)
        self._open = kind
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            self.texts[self._open] = self.texts.get(self._open, "") + data


class TestPage:
    def test_first_lines_say_who_wrote_it(self) -> None:
        page = api.report(sample_trace()).html()
        assert page.startswith('<!doctype html>\n<!-- written by aotcli, "schema": "aotcli.report" -->\n')

    def test_policy_allows_its_own_style_and_script_alone(self) -> None:
        elements = Elements(api.report(sample_trace()).html())
        policy = next(value or "" for tag, name, value in elements.attributes if tag == "meta" and name == "content")
        assert "default-src 'none'" in policy
        for tag in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(elements.texts[tag].encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy

    def test_names_nothing_elsewhere(self) -> None:
        elements = Elements(api.report(sample_trace()).html())
        links = {value for _, name, value in elements.attributes if name in ("src", "href", "action", "srcset")}
        assert links == {"#work"}
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script_text())

    @pytest.mark.parametrize("name", [EVIL, "a\ud800b\u2028c\x00d", "é<&>\"'", "x" * 5000])
    def test_names_cannot_leave_their_place(self, name: str) -> None:
        trace = sample_trace(evil_graph(name))
        trace = dataclasses.replace(trace, model=dataclasses.replace(trace.model, name=name), notes=(name,))
        page = api.report(trace).html()
        page.encode("utf-8")
        assert Elements(page).tags == Elements(api.report(sample_trace(evil_graph("a"))).html()).tags
        shown = name.encode("utf-8", "replace").decode()
        assert any(shown in text for text in embedded(page)["strings"])

    def test_same_step_same_file(self) -> None:
        assert api.report(sample_trace(layered(3))).html() == api.report(sample_trace(layered(3))).html()

    @pytest.mark.parametrize("bad", [dataclasses.replace(sample_trace(), regions=())])
    def test_no_region(self, bad: Trace) -> None:
        with pytest.raises(InputError, match="there is nothing to report"):
            api.report(bad)

    def test_one_node(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (2, 2))
        trace = sample_trace(dataclasses.replace(g.build([x], [None]), has_backward=False))
        assert data(trace)["regions"][0]["picture"]["views"][0]["boxes"]["x"] == []

    @pytest.mark.parametrize("sample", ["dynamic_shapes", "graph_break"])
    def test_of_a_real_capture(self, captured: Callable[[str, str], Any], sample: str) -> None:
        found = data(captured(sample, "inductor").trace, against="@save-all")
        assert len(found["regions"]) == (3 if sample == "graph_break" else 1)
        assert all(region["picture"]["views"][0]["boxes"]["x"] for region in found["regions"])

    def test_file_name_is_fit_for_a_file(self) -> None:
        trace = sample_trace(layered(2))
        odd = dataclasses.replace(trace, model=dataclasses.replace(trace.model, name="a/b\\c <d>"))
        assert api.report(odd, strategy="mincut:aggressive").file_name == "a-b-c-d-mincut-aggressive.html"

    def test_unknown_strategy(self) -> None:
        with pytest.raises(StrategyError):
            api.report(sample_trace(), strategy="nonsense")

    def test_save_replaces_its_own_file_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "net.html"
        found = api.report(sample_trace())
        found.save(path)
        found.save(path)
        path.write_text("<!doctype html>\n<p>mine</p>")
        with pytest.raises(OutputError):
            found.save(path)
        assert "mine" in path.read_text()
        found.save(path, force=True)
        assert path.read_text() == found.html()

    def test_shows_itself_in_a_sentence(self) -> None:
        assert repr(api.report(sample_trace())).startswith("<Report: net, mincut: saved for the backward")


class TestScript:
    def test_parses(self, tmp_path: Path) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("no node to parse the script with; the browser's tests run it")
        path = tmp_path / "report.js"
        path.write_text(script_text(), encoding="utf-8")
        result = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr

    def test_files_are_short_and_make_no_markup_of_texts(self) -> None:
        for path in sorted((ROOT / "aotcli" / "render" / "report").rglob("*.js")):
            text = path.read_text(encoding="utf-8")
            assert len(text.splitlines()) < 400, path
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), (
                path
            )
            assert max(map(len, text.splitlines())) <= 120, path

    def test_is_in_the_wheel(self, tmp_path: Path) -> None:
        pytest.importorskip("hatchling", reason="no hatchling to build a wheel with")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
        here = ROOT / "aotcli" / "render" / "report"
        for path in (*here.rglob("*.js"), *here.rglob("*.css"), here / "template.html"):
            assert path.relative_to(ROOT).as_posix() in names
