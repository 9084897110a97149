from __future__ import annotations

import dataclasses
import json

import pytest
from builders import layered, random_graph, sample_trace, two_matmuls

from aotcli.analysis.assemble import assemble, decision_of
from aotcli.errors import OutputError, RecordError
from aotcli.ir.joint import Node
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.plan import Plan, decision_from_plan, plan_of
from aotcli.ir.serial import dump_plan, dump_trace, load_plan, load_trace, plan_text, read_plan, write_plan
from aotcli.ir.trace import Trace


def planned(*regions) -> tuple[Trace, list[Partition]]:
    trace = sample_trace(*regions)
    return trace, [
        assemble(
            graph,
            Decision(saved=tuple((node.name, Reason("by hand", "as a test")) for node in graph.nodes if savable(node))),
            strategy="policy",
            options={"budget": 0.5, "aggressive": True, "pattern": "h.*", "none": None, "what": frozenset()},
        )
        for graph in trace.regions
    ]


def savable(node: Node) -> bool:
    return node.partitioner_tag != "is_backward" and node.name.startswith(("primals", "relu", "gelu", "mm", "add"))


def test_a_plan_comes_back_exactly():
    trace, partitions = planned(two_matmuls())
    text = dump_plan(trace, partitions)
    plan = load_plan(text)
    assert plan == plan_of(trace, partitions)
    assert plan_text(plan) == text
    assert isinstance(plan, Plan)


def test_what_a_plan_says():
    trace, partitions = planned(two_matmuls(level="inductor"))
    plan = load_plan(dump_plan(trace, partitions))
    assert (plan.strategy, plan.level, plan.device, plan.model) == ("policy", "inductor", "cpu", "net")
    assert dict(plan.options) == {
        "budget": 0.5, "aggressive": True, "pattern": "h.*", "none": None, "what": "frozenset()",
    }  # fmt: skip
    (region,) = plan.regions
    assert region.fingerprint == trace.regions[0].fingerprint
    assert region.saved_bytes == 128
    assert [(value.name, value.rule) for value in region.saved] == [
        ("primals_2", "by hand"), ("primals_3", "by hand"), ("relu", "by hand"),
    ]  # fmt: skip
    text = dump_plan(trace, partitions)
    assert text.startswith('{\n "schema": "aotcli.plan",\n "schema_version": "1.0",\n')
    assert json.loads(text)["options"]["budget"] == 0.5


@pytest.mark.parametrize("graph", [two_matmuls(), layered(3)])
def test_a_plan_applies_to_the_graph_read_from_its_record(graph):
    trace, partitions = planned(graph)
    plan = load_plan(dump_plan(trace, partitions))
    loaded = load_trace(dump_trace(trace)).regions[0]
    decision = decision_from_plan(loaded, plan.regions[0])
    again = assemble(loaded, decision, strategy="policy", options=partitions[0].options)
    assert again == partitions[0]
    assert decision == decision_of(partitions[0])


def test_a_plan_applies_after_nodes_are_renamed():
    from test_ir_fingerprint import renamed, reordered

    trace, partitions = planned(two_matmuls())
    other = renamed(reordered(trace.regions[0], 3), lambda name: f"x_{name}")
    decision = decision_from_plan(other, plan_of(trace, partitions).regions[0])
    assert {name for name, _ in decision.saved} == {"x_primals_2", "x_primals_3", "x_relu"}


def test_replaced_nodes_are_kept_by_position():
    trace, partitions = planned(two_matmuls())
    merged = dataclasses.replace(partitions[0], replaced={"t_1": "t"}, keep_order=True, drop_dead_collectives=True)
    plan = load_plan(dump_plan(trace, [merged]))
    decision = decision_from_plan(trace.regions[0], plan.regions[0])
    assert decision.replaced == {"t_1": "t"}
    assert decision.keep_order
    assert decision.drop_dead_collectives


def test_a_plan_for_another_graph_is_refused():
    trace, partitions = planned(two_matmuls())
    region = plan_of(trace, partitions).regions[0]
    with pytest.raises(RecordError) as caught:
        decision_from_plan(random_graph(1), region)
    assert "another graph" in str(caught.value)
    assert "aotcli partition" in caught.value.fix
    with pytest.raises(RecordError, match="nodes that the graph does not have"):
        decision_from_plan(trace.regions[0], dataclasses.replace(region, replaced=((0, 999),)))


def test_partitions_that_are_no_plan():
    trace, partitions = planned(two_matmuls())
    with pytest.raises(RecordError, match="0 partitions"):
        plan_of(trace, [])
    with pytest.raises(RecordError, match="another graph"):
        plan_of(trace, [dataclasses.replace(partitions[0], fingerprint="x")])
    two, both = planned(two_matmuls(), two_matmuls())
    with pytest.raises(RecordError, match="one strategy"):
        plan_of(two, [both[0], dataclasses.replace(both[1], strategy="other")])


def test_schemas_are_told_apart():
    trace, partitions = planned(two_matmuls())
    with pytest.raises(RecordError) as caught:
        load_trace(dump_plan(trace, partitions))
    assert "this is a plan, not a trace" in str(caught.value)
    assert "--strategy replay:" in caught.value.fix
    with pytest.raises(RecordError, match="this is a trace, not a plan"):
        load_plan(dump_trace(trace))


def test_versions_of_plans():
    trace, partitions = planned(two_matmuls())
    text = dump_plan(trace, partitions)
    newer = load_plan(text.replace('"schema_version": "1.0"', '"schema_version": "1.4", "colour": "blue"'))
    assert newer.regions == plan_of(trace, partitions).regions
    assert len(newer.notes) == 1
    with pytest.raises(RecordError, match=r"version 2\.0"):
        load_plan(text.replace('"schema_version": "1.0"', '"schema_version": "2.0"'))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"strategy"', '"strategie"'),
        ('"id":', '"idd":'),
        ('"saved": [', '"saved": ["x",'),
        ('"replaced": []', '"replaced": [[1]]'),
        ('"replaced": []', '"replaced": [["a","b"]]'),
        ('"keep_order": false', '"keep_order": "no"'),
        ('"budget":0.5', '"budget":[]'),
    ],
)
def test_damaged_plans_are_refused(old, new):
    text = dump_plan(*planned(two_matmuls()))
    assert old in text
    with pytest.raises(RecordError, match="damaged"):
        load_plan(text.replace(old, new))


def test_plan_files(tmp_path):
    trace, partitions = planned(two_matmuls())
    for name in ("x.aot.json", "x.aot.json.gz"):
        write_plan(trace, partitions, tmp_path / name)
        assert read_plan(tmp_path / name) == plan_of(trace, partitions)
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(OutputError):
        write_plan(trace, partitions, tmp_path / "mine")
