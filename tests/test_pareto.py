"""`aotcli pareto`: points, their order and bounds, every format, and what cannot be drawn."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import layered, sample_trace
from graph_builder import GraphBuilder

import aotcli
from aotcli.api.pareto import ParetoResult, pareto
from aotcli.cli.main import run
from aotcli.errors import InputError
from aotcli.ir.joint import JointGraph
from aotcli.ir.pareto import PointKind
from aotcli.render.page import Page


@pytest.fixture(scope="module")
def result() -> ParetoResult:
    return pareto(sample_trace(layered(8)), between=6, target="net.aot.json")


def corners(result: ParetoResult) -> list[tuple[int, int]]:
    return [(point.nbytes, point.cost) for point in result.front.points if point.kind is PointKind.CORNER]


def test_bytes_fall_and_costs_rise_along_the_front(result: ParetoResult) -> None:
    own = [point for point in result.front.points if point.kind is not PointKind.STRATEGY]
    assert len(own) > 3
    assert [point.nbytes for point in own] == sorted({point.nbytes for point in own}, reverse=True)
    assert [point.cost for point in own] == sorted({point.cost for point in own})


def test_no_strategy_is_below_the_bound(result: ParetoResult) -> None:
    for point in result.front.points:
        assert point.bound is None or point.cost >= point.bound - 1e-6, point
    for nbytes, cost in corners(result):
        assert next(p for p in result.front.points if (p.nbytes, p.cost) == (nbytes, cost)).bound == cost


def test_labels_give_the_plans_that_are_shown(result: ParetoResult) -> None:
    for point in result.front.points:
        if point.kind is PointKind.CORNER:
            planned = aotcli.partition(result.trace, strategy=point.label).plan.partitions[0]
            assert planned.saved_bytes <= point.nbytes
            assert planned.peak_bytes > 0


def test_every_strategy_beside_the_front_is_named(result: ParetoResult) -> None:
    labels = {point.label for point in result.front.points if point.kind is PointKind.STRATEGY}
    assert labels == {"save-all", "mincut", "recompute-all"}


def test_text_fits_and_is_ascii_where_wanted(result: ParetoResult) -> None:
    text = result.text(Page(80))
    assert max(map(len, text.splitlines())) <= 80
    assert "--strategy budget:" in text
    assert result.text(Page(80, unicode=False)).isascii()


def test_json_has_whole_numbers(result: ParetoResult) -> None:
    document = json.loads(result.json())
    assert (document["schema"], document["cost_unit"]) == ("aotcli.pareto", "ps")
    assert all(isinstance(point["saved_bytes"], int) for point in document["points"])
    assert len(document["points"]) == len(result.front.points)


def test_markdown_and_svg_are_escaped() -> None:
    found = pareto(sample_trace(layered(3)), target="<script>|")
    assert "<script>" not in found.markdown()
    svg = ET.fromstring(found.svg())
    assert svg.tag.endswith("svg")
    assert len(svg.findall(".//{*}circle")) == len([p for p in found.front.points if p.kind is PointKind.CORNER])


def test_flops_are_a_price_too() -> None:
    found = pareto(sample_trace(layered(4)), options={"cost": "flops"})
    assert (found.front.unit, found.front.pricing) == ("FLOP", "FLOPs")


def forward_only() -> JointGraph:
    g = GraphBuilder()
    x = g.input("x", (2, 2))
    return g.build([g.pointwise("aten.relu.default", x)], [], has_backward=False)


def test_a_step_without_a_backward_has_no_front() -> None:
    with pytest.raises(InputError, match="has no backward"):
        pareto(sample_trace(forward_only()))


def test_regions_are_chosen_by_what_they_save() -> None:
    trace = sample_trace(layered(2), layered(5), forward_only())
    assert pareto(trace).front.region == 1
    assert pareto(trace, region=1).front.region == 0
    with pytest.raises(InputError, match="--region 3") as caught:
        pareto(trace, region=3)
    assert "1, 2" in caught.value.why


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    aotcli.save(sample_trace(layered(4)), "net.aot.json")
    assert run(["pareto", "net.aot.json", "--between", "2", "-o", "front.svg"]) == 0
    assert run(["pareto", "net.aot.json", "-o", "front.svg"]) == 0  # its own file may be replaced
    assert Path("front.svg").read_text().startswith("<?xml")
    assert run(["pareto", "net.aot.json", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "aotcli.pareto"
    Path("mine.svg").write_text("<svg/>")
    assert run(["pareto", "net.aot.json", "-o", "mine.svg"]) == 2
    assert run(["pareto", "net.aot.json", "--hardware", "abacus"]) == 2
    assert run(["pareto", "net.aot.json", "--with-torch"]) == 2
    assert "aotcli partition" in capsys.readouterr().err
