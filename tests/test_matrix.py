"""Every strategy on every sample model at both levels, from the registries: each plan is verified, and the halves that
are cut without torch equal the modules that run, which equal those of PyTorch's own passes for the same saved set."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import LEVELS, SAMPLES
from halves import assert_same, assert_same_graph, record_of
from torch_oracle import extract, replays

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.ir.partition import Category, Partition
from aotcli.ir.verify import verify_graph, verify_partition
from aotcli.lowering.split import split
from aotcli.strategies import load_strategy, strategy_names

torch = pytest.importorskip("torch")


@pytest.fixture(params=[(sample, level) for sample in SAMPLES for level in LEVELS], ids="-".join, scope="module")
def capture(request: pytest.FixtureRequest, captured: Any) -> Any:
    return captured(*request.param)


def plans(region: Any) -> dict[str, Partition]:
    return {name: load_strategy(name).plan(region.graph, region) for name in strategy_names()}


def test_every_plan_is_sound_and_runs_as_it_says(capture: Any) -> None:
    for region in capture.regions:
        verify_graph(region.graph)
        for name, partition in plans(region).items():
            where = f"{region.graph.name} {name}"
            verify_partition(region.graph, partition)
            check_bytes(partition)
            if not region.graph.has_backward:
                assert not partition.saved
                assert not partition.backward_nodes
                continue
            halves = cut(region.graph, decision_of(partition))
            forward, backward = split(region, partition)
            assert not replays(region, partition), "no sample checkpoints a random op"
            assert_same(halves.forward, forward, region.graph, f"{where} forward")
            assert_same(halves.backward, backward, region.graph, f"{where} backward")
            for side, ours, theirs in zip(
                ("forward", "backward"), (forward, backward), extract(region, partition), strict=True
            ):
                level = region.graph.level
                assert_same_graph(record_of(ours, level), record_of(theirs, level), f"{where} {side}")


def check_bytes(partition: Partition) -> None:
    by_category = dict.fromkeys(Category, 0)
    storages: set[int] = set()
    for value in partition.saved:
        by_category[value.category] += value.nbytes
        assert (value.nbytes == 0) == (value.storage in storages or value.storage < 0 or not value.value.storage_nbytes)
        storages.add(value.storage)
    assert partition.saved_bytes == by_category[Category.ACTIVATION]
    assert partition.saved_output_bytes == by_category[Category.OUTPUT]
    assert partition.recompute_flops <= partition.forward_flops
    assert partition.peak_bytes >= partition.saved_bytes


def test_references_save_what_torch_returns(capture: Any) -> None:
    from aotcli.capture import torch_private_split as private

    functions = {
        "torch-default": private.default_partition_function(),
        "torch-mincut": private.min_cut_partition_function(1.0),
    }
    for region in capture.regions:
        if not region.graph.has_backward:
            continue
        for name, function in functions.items():
            partition = load_strategy(name).plan(region.graph, region)
            with private.compiling(region.gm):
                forward, backward = function(
                    private.copy_joint(region.gm),
                    region.joint_inputs,
                    num_fwd_outputs=region.num_fwd_outputs,
                    static_lifetime_input_indices=list(region.static_indices),
                )
            returned = [node.name for node in forward.graph.find_nodes(op="output")[0].args[0][region.num_fwd_outputs :]]
            assert [value.name for value in partition.saved] == returned
            halves = cut(region.graph, decision_of(partition))
            assert_same(halves.forward, forward, region.graph, f"{name} forward")
            assert_same(halves.backward, backward, region.graph, f"{name} backward")


def test_save_all_is_torchs_default(capture: Any) -> None:
    for region in capture.regions:
        ours, theirs = (load_strategy(name).plan(region.graph, region) for name in ("default", "torch-default"))
        assert [value.name for value in ours.saved] == [value.name for value in theirs.saved]
        assert ours.forward_nodes == theirs.forward_nodes
        assert ours.backward_nodes == theirs.backward_nodes
        assert ours.peak_bytes == theirs.peak_bytes
