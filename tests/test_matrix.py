"""Every strategy on every sample model at both levels, from the registries: each plan is verified, and the halves that
are cut without torch equal the modules that run, which equal those of PyTorch's own passes for the same saved set."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pytest
from halves import assert_same, assert_same_but_for_replay, assert_same_modules, by_place, of_module
from samples import LEVELS, SAMPLES
from torch_oracle import extract, replays

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.ir.partition import Category, Partition
from aotcli.ir.tensor import TensorSpec
from aotcli.ir.verify import verify_graph, verify_partition
from aotcli.lowering.split import split
from aotcli.strategies import load_strategy, strategy_class, strategy_names

torch = pytest.importorskip("torch")

REFERENCES = ("torch-default", "torch-mincut")
# A strategy with a main option (a plan file, a budget) decides nothing without it, and has its own tests.
NAMES = tuple(name for name in strategy_names() if strategy_class(name).argument is None)


@dataclass
class Planned:
    """A captured region, its plan by every strategy, and the modules that PyTorch's own functions returned."""

    region: Any
    plans: dict[str, Partition] = field(default_factory=dict)
    returned: dict[str, tuple[Any, Any]] = field(default_factory=dict)


def plan(region: Any) -> Planned:
    from aotcli.capture import reference

    planned = Planned(region)
    run = reference.run_partition_function

    def run_and_keep(function: Any, live: Any, label: str) -> Any:
        result = run(function, live, label)
        planned.returned[label] = result.forward, result.backward
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "run_partition_function", run_and_keep)
        for name in NAMES:
            planned.plans[name] = load_strategy(name).plan(region.graph, region)
    return planned


@pytest.fixture(params=[(sample, level) for sample in SAMPLES for level in LEVELS], ids="-".join, scope="module")
def planned(request: pytest.FixtureRequest, captured: Any) -> list[Planned]:
    return [plan(region) for region in captured(*request.param).regions]


def test_every_plan_is_sound(planned: list[Planned]) -> None:
    for each in planned:
        graph = each.region.graph
        verify_graph(graph)
        for partition in each.plans.values():
            verify_partition(graph, partition)
            check_bytes(partition)
            if not graph.has_backward:
                assert not partition.saved
                assert not partition.backward_nodes


def check_bytes(partition: Partition) -> None:
    totals = dict.fromkeys(Category, 0)
    storages: set[int] = set()
    for value in partition.saved:
        totals[value.category] += value.nbytes
        if isinstance(value.value, TensorSpec):
            assert value.nbytes == (0 if value.storage in storages else value.value.storage_nbytes)
        storages.add(value.storage)
    assert partition.saved_bytes == totals[Category.ACTIVATION]
    assert partition.saved_input_bytes == totals[Category.PARAMETER] + totals[Category.BUFFER] + totals[Category.INPUT]
    assert partition.saved_output_bytes == totals[Category.OUTPUT]
    assert partition.recompute_flops <= partition.forward_flops
    assert partition.peak_bytes >= partition.saved_bytes


def test_our_cut_is_what_runs(planned: list[Planned]) -> None:
    for each in planned:
        graph = each.region.graph
        for name, partition in each.plans.items():
            if not graph.has_backward:
                continue
            where = f"{graph.name} {name}"
            halves = cut(graph, decision_of(partition))
            forward, backward = split(each.region, partition)
            if replays(each.region, partition):
                assert_same_but_for_replay(halves.forward, forward, f"{where} forward")
                assert_same_but_for_replay(halves.backward, backward, f"{where} backward")
                for ours, theirs in zip((forward, backward), extract(each.region, partition), strict=True):
                    assert by_place(*of_module(ours)) == by_place(*of_module(theirs)), where
                continue
            assert_same(halves.forward, forward, graph, f"{where} forward")
            assert_same(halves.backward, backward, graph, f"{where} backward")
            if partition.order:  # PyTorch's passes know only their own order: compare in that one
                partition = dataclasses.replace(partition, order="")
                forward, backward = split(each.region, partition)
            if name in REFERENCES:
                theirs = each.returned[name]
            elif name == "save-all":  # PyTorch's default partitioner decides alike: compare with the modules it made
                theirs = each.returned["torch-default"]
            else:
                theirs = extract(each.region, partition)
            assert_same_modules(forward, theirs[0], f"{where} forward")
            assert_same_modules(backward, theirs[1], f"{where} backward")


def test_references_save_what_torch_returns(planned: list[Planned]) -> None:
    for each in planned:
        for name, (forward, _) in each.returned.items():
            outputs = forward.graph.find_nodes(op="output")[0].args[0]
            saved = [node.name for node in outputs[each.region.num_fwd_outputs :]]
            assert [value.name for value in each.plans[name].saved] == saved


def test_save_all_is_torchs_default(planned: list[Planned]) -> None:
    for each in planned:
        ours, theirs = each.plans["save-all"], each.plans["torch-default"]
        assert [value.name for value in ours.saved] == [value.name for value in theirs.saved]
        assert ours.forward_nodes == theirs.forward_nodes
        assert ours.backward_nodes == theirs.backward_nodes
        assert (ours.saved_bytes, ours.peak_bytes) == (theirs.saved_bytes, theirs.peak_bytes)
