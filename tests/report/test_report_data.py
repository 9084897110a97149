"""The data behind a report agrees with what was planned."""

from __future__ import annotations

import dataclasses
from itertools import accumulate
from typing import Any

import pytest
from builders import layered, random_graph, sample_trace, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import data, forward_only

from aotcli import api
from aotcli.analysis.lifetimes import trace_lifetimes
from aotcli.ir.partition import Category


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
