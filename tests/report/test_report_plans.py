"""Plans beside the report: the trade-off, and changes against another step."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from builders import layered, sample_trace
from report_pages import data, forward_only

from aotcli import api
from aotcli.analysis.report import add_fronts
from aotcli.errors import InputError
from aotcli.ir.partition import Category
from aotcli.ir.sizes import parse_size


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
