"""The report's data and file: what it says agrees with what was planned, and nothing in it can run or load anything."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli import api
from aotcli.analysis.lifetimes import trace_lifetimes
from aotcli.analysis.report import add_fronts
from aotcli.errors import InputError, OutputError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category
from aotcli.ir.sizes import parse_size
from aotcli.ir.trace import Trace
from aotcli.render.report.page import script_text

ROOT = Path(__file__).parents[1]
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--"


def data(trace: Trace, **options: Any) -> dict[str, Any]:
    """The data that the page holds."""
    return embedded(api.report(trace, **options).html())


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def forward_only() -> JointGraph:
    """One op, and no backward."""
    g = GraphBuilder()
    y = g.pointwise("aten.relu.default", g.input("x", (2, 2)))
    return dataclasses.replace(g.build([y], [None]), has_backward=False)


def evil_graph(name: str = EVIL) -> JointGraph:
    """A layer whose module, class and file have a name; it saves what its backward needs."""
    g = GraphBuilder()
    w, x = g.param("w", (8, 8), origin=f"{name}.weight"), g.input("x", (8, 8))
    t = g.tangent("t", (8, 8))
    own = {"module": name, "module_type": name, "source": f"{name}.py:3"}
    h = g.matmul(x, w, (8, 8), **own)
    y = g.pointwise("aten.exp.default", g.pointwise("aten.sin.default", h, **own), **own)
    gh = g.pointwise("aten.mul.Tensor", g.pointwise("aten.cos.default", h, backward=True, **own), t, **own)
    gw = g.matmul(g.view(x, (8, 8), target="aten.t.default", backward=True), gh, (8, 8), **own)
    return g.build([y], [gw, None])


class TestVerdict:
    def test_says_what_the_plan_says(self) -> None:
        trace = sample_trace(layered(4), breaks=())
        plan = api.partition(trace, alternatives=False).plan
        verdict = data(trace)["verdict"]
        assert (verdict["saved_bytes"], verdict["saved_tensors"]) == (plan.saved_bytes, plan.saved_tensors)
        assert verdict["eager_bytes"] == 192
        assert [tile["label"] for tile in verdict["tiles"]] == [
            "Recomputed",
            "Predicted peak",
            "FLOPs",
            "In memory anyway",
        ]
        assert verdict["tiles"][1]["detail"].startswith("at mm of h.3.fc in the backward")
        assert dict(verdict["facts"])["graph"] == "43 nodes in 1 region"

    def test_without_eager(self) -> None:
        verdict = data(sample_trace(layered(3), eager=None))["verdict"]
        assert (verdict["eager_bytes"], verdict["eager"]) == (None, "eager not measured")

    def test_without_a_backward(self) -> None:
        assert data(sample_trace(forward_only()))["verdict"]["has_backward"] is False

    def test_options_of_the_strategy(self) -> None:
        found = data(sample_trace(layered(3)), strategy="mincut", options={"aggressive": True})
        assert found["verdict"]["strategy"] == "mincut:aggressive"


class TestNodes:
    def test_edges_come_back(self) -> None:
        graph = random_graph(3)
        nodes = data(sample_trace(graph))["regions"][0]["nodes"]
        starts = [0, *accumulate(nodes["input_counts"])]
        for position in range(len(graph.nodes) - 1):
            back = nodes["inputs"][starts[position] : starts[position + 1]]
            assert tuple(position - each for each in back) == graph.inputs_of[position]

    def test_ids_are_canonical(self) -> None:
        trace = sample_trace(layered(3))
        document = data(trace)["regions"][0]["nodes"]
        ids = dict(zip(document["name"], document["id"], strict=True))
        saved = api.partition(trace, alternatives=False).plan.partitions[0].saved
        assert {value.name: value.id for value in saved} == {value.name: ids[value.name] for value in saved}

    @pytest.mark.parametrize("strategy", ["save-all", "mincut", "recompute-all"])
    def test_flags_say_which_half(self, strategy: str) -> None:
        trace = sample_trace(layered(3))
        partition = api.partition(trace, strategy=strategy, alternatives=False).plan.partitions[0]
        nodes = data(trace, strategy=strategy)["regions"][0]["nodes"]
        flags = dict(zip(nodes["name"], nodes["flags"], strict=True))
        assert {name for name, flag in flags.items() if flag & 1} == set(partition.forward_nodes)
        assert {name for name, flag in flags.items() if flag & 2} == set(partition.backward_nodes)
        saved = {value.name for value in partition.saved if value.category is Category.ACTIVATION}
        assert {name for name, flag in flags.items() if flag & 4} == saved


class TestTables:
    def test_rows_hold_every_saved_value_once(self) -> None:
        found = data(sample_trace(layered(5)))["regions"][0]["saved"]
        assert sorted(found["rows"]["values"]) == list(range(len(found["values"]["node"])))
        assert sum(found["rows"]["nbytes"]) == sum(found["values"]["nbytes"])

    @given(seed=st.integers(0, 10_000))
    @settings(max_examples=25, deadline=None)
    def test_lives_add_up_to_the_timeline(self, seed: int) -> None:
        from aotcli.analysis.assemble import decision_of
        from aotcli.analysis.cut import cut

        trace = sample_trace(random_graph(seed, checkpoints=False))
        partition = api.partition(trace, alternatives=False).plan.partitions[0]
        timeline = trace_lifetimes(trace.regions[0], cut(trace.regions[0], decision_of(partition))).timeline
        memory = data(trace, front=False)["regions"][0]["memory"]
        live = [0] * (len(memory["steps"]) + 1)
        for nbytes, born, life in zip(memory["nbytes"], memory["born"], memory["life"], strict=True):
            live[born] += nbytes
            live[born + life + 1] -= nbytes
        assert list(accumulate(live))[:-1] == list(timeline.live_bytes)
        assert memory["peak_bytes"] == partition.peak_bytes

    def test_modules_add_up(self) -> None:
        region = data(sample_trace(layered(4)))["regions"][0]
        for table in ("modules", "layers"):
            assert region[table]["saved_bytes"][0] == region["saved_bytes"]
        assert sum(region["lines"]["saved_bytes"]) == region["saved_bytes"]
        assert max(region["layers"]["count"]) == 4

    def test_source_text_only_where_asked_for(self) -> None:
        graph = two_matmuls()
        nodes = tuple(dataclasses.replace(node, code="secret = 1" if node.source else None) for node in graph.nodes)
        trace = sample_trace(dataclasses.replace(graph, nodes=nodes))
        assert "secret" not in api.report(trace).html()
        assert "secret = 1" in data(trace, with_source=True)["strings"]


class TestPicture:
    @given(seed=st.integers(0, 10_000))
    @settings(max_examples=25, deadline=None)
    def test_inner_boxes_are_parts_of_their_box(self, seed: int) -> None:
        for view in data(sample_trace(random_graph(seed)), front=False)["regions"][0]["picture"]["views"]:
            boxes = view["boxes"]
            inner = data_inner(boxes)
            starts = [0, *accumulate(boxes["nodes_counts"])]
            for box, leaves in inner.items():
                own = boxes["nodes"][starts[box] : starts[box + 1]]
                assert sorted(node for leaf in leaves for node in leaf) == sorted(own)

    def test_links_that_lead_into_a_box_say_where(self) -> None:
        for view in data(sample_trace(layered(4)), front=False)["regions"][0]["picture"]["views"]:
            links, boxes = view["links"], view["boxes"]
            for end, column in (("source", "source_ends_counts"), ("target", "target_ends_counts")):
                for box, count in zip(links[end], links[column], strict=True):
                    assert count > 0 or boxes["inner"][box] < 0

    def test_equal_layers_share_a_drawing(self) -> None:
        few, many = (data(sample_trace(layered(n)), front=False)["regions"][0]["picture"] for n in (4, 9))
        assert len(few["views"]) == len(many["views"]) == 2
        assert len(few["inner"]) == len(many["inner"])

    def test_one_view_where_nothing_repeats(self) -> None:
        assert len(data(sample_trace(two_matmuls()))["regions"][0]["picture"]["views"]) == 1


def data_inner(boxes: dict[str, Any]) -> dict[int, list[list[int]]]:
    """Nodes of the boxes inside each box that can be opened. Which leaves are whose follows from the inner drawings."""
    starts = [0, *accumulate(boxes["leaves"])]
    found: dict[int, list[list[int]]] = {}
    place = 0
    for box, count in enumerate(boxes["leaf_counts"]):
        leaves = range(place, place + count)
        place += count
        if boxes["inner"][box] >= 0:
            found[box] = [boxes["leaf_nodes"][starts[leaf] : starts[leaf + 1]] for leaf in leaves]
    return found


class TestTradeOff:
    def test_no_plan_lies_below_the_front(self) -> None:
        found = data(sample_trace(layered(6)))["trade_off"]
        corners = list(zip(found["corners"]["saved_bytes"], found["corners"]["cost"], strict=True))
        points = found["points"]
        for saved, cost in zip(points["saved_bytes"], points["cost"], strict=True):
            assert cost >= least_cost(corners, saved)
        assert sum(points["chosen"]) == 1

    def test_a_corner_s_command_gives_what_it_saves(self) -> None:
        trace = sample_trace(layered(6))
        corners = data(trace)["trade_off"]["corners"]
        starts = [0, *accumulate(corners["saved"][0]["nodes_counts"])]
        for place, (nbytes, words) in enumerate(zip(corners["saved_bytes"], corners["arguments"], strict=True)):
            strategy = words.removeprefix("--strategy ")
            assert parse_size(strategy.partition(":")[2]) >= nbytes
            partition = api.partition(trace, strategy=strategy, alternatives=False).plan.partitions[0]
            assert partition.saved_bytes == nbytes
            shown = corners["saved"][0]["nodes"][starts[place] : starts[place + 1]]
            storages = {trace.regions[0].nodes[node].value.storage for node in shown}
            saved = {value.storage for value in partition.saved if value.category is Category.ACTIVATION}
            assert storages == saved

    def test_regions_together(self) -> None:
        found = add_fronts([[(10, 0), (4, 3)], [(6, 1), (0, 7)], []])
        assert [(each.nbytes, each.cost) for each in found] == [(16, 1), (10, 4), (4, 10)]
        assert [each.places for each in found] == [(0, 0, 0), (1, 0, 0), (1, 1, 0)]

    def test_left_out(self) -> None:
        assert data(sample_trace(layered(3)), front=False)["trade_off"] is None
        assert data(sample_trace(forward_only()))["trade_off"] is None


def least_cost(corners: list[tuple[int, int]], saved: int) -> float:
    """What a plan that saves so much costs at least."""
    if saved >= corners[0][0]:
        return corners[0][1]
    for (more, cheap), (less, dear) in pairwise(corners):
        if less <= saved:
            return cheap + (dear - cheap) * (more - saved) / max(1, more - less)
    return corners[-1][1]


class TestChanges:
    def test_against_another_strategy_of_the_same_step(self) -> None:
        changes = data(sample_trace(layered(4)), against="@recompute-all")["changes"]
        assert changes["delta_bytes"] > 0
        assert changes["lists"][0]["rows"][0]["nodes"]

    def test_against_another_graph(self) -> None:
        found = data(sample_trace(layered(4)), against=sample_trace(layered(3)))
        assert found["changes"]["delta_bytes"] == 1024
        shown = {
            found["regions"][0]["picture"]["changes"][change]
            for view in found["regions"][0]["picture"]["views"]
            for change in view["boxes"]["change"]
        }
        assert "added" in shown

    def test_what_is_gone_has_no_nodes(self) -> None:
        found = data(sample_trace(layered(3)), against=sample_trace(layered(4)))
        picture = found["regions"][0]["picture"]
        gone = [
            count
            for view in picture["views"]
            for change, count in zip(view["boxes"]["change"], view["boxes"]["nodes_counts"], strict=True)
            if picture["changes"][change] == "removed"
        ]
        assert gone
        assert set(gone) == {0}

    def test_against_itself(self) -> None:
        trace = sample_trace(layered(3))
        assert data(trace, against=trace)["changes"]["is_empty"] is True

    def test_against_a_plan_file(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.aot.json"
        api.save(api.partition(sample_trace(layered(3)), strategy="recompute-all", alternatives=False), plan)
        same = data(sample_trace(layered(3)), against=str(plan))["changes"]
        assert same["delta_bytes"] == 5 * 512
        assert data(sample_trace(layered(5)), against=str(plan))["changes"]["delta_bytes"] > 0

    def test_against_something_else(self) -> None:
        with pytest.raises(InputError, match="cannot be compared"):
            api.report(sample_trace(), against=3)  # type: ignore[arg-type]


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
