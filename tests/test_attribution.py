"""Nearly everything has an owner: 99 % of saved bytes and 95 % of backward ops have a module and a line."""

from __future__ import annotations

import pytest
from samples import LEVELS, SAMPLES

from aotcli.analysis.owners import with_owners
from aotcli.analysis.roles import classify
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.partition import Category
from aotcli.strategies import load_strategy


def share(parts: list[tuple[int, bool]]) -> float:
    total = sum(weight for weight, _ in parts)
    return 1.0 if total == 0 else sum(weight for weight, owned in parts if owned) / total


def backward_ops(graph: JointGraph) -> list[tuple[int, bool]]:
    roles = classify(graph)
    ops = [n for n, fw in zip(graph.nodes, roles.required_forward, strict=True) if n.kind is NodeKind.OP and not fw]
    return [(1, node.module is not None and node.source is not None) for node in ops]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_saved_bytes_and_backward_ops_are_attributed(captured: object, sample: str, level: str) -> None:
    for graph in captured(sample, level).trace.regions:  # type: ignore[operator]
        owned = with_owners(graph)
        assert share(backward_ops(owned)) >= 0.95
        for strategy in ("save-all", "mincut"):
            saved = load_strategy(strategy).plan(owned).saved
            activations = [value for value in saved if value.category is Category.ACTIVATION]
            parts = [(each.nbytes, each.module is not None and each.source is not None) for each in activations]
            assert share(parts) >= 0.99
