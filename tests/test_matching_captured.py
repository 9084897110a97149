"""Pairings of steps that were really traced: edited ones, and a model with one line of it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from graph_edits import (
    Edited,
    edit_cost,
    inserted_at_random,
    recast,
    replaced,
    score,
    scrambled,
    with_shuffled_primals,
)
from samples import LEVELS, ROOT

from aotcli.analysis.matching import match_graphs
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pairing import Match, Pairing

pytest.importorskip("torch")

SMALL = (("width", "64"), ("batch", "2"), ("seq", "16"), ("vocab", "100"))
GPT = (ROOT / "sample_models" / "gpt.py").read_text(encoding="utf-8")
FUSED = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
BY_HAND = "((q @ k.transpose(-2, -1) * 0.125 + torch.ones(16, 16).tril().log()).softmax(-1) @ v)"
EDITS: dict[str, Callable[[JointGraph], Edited]] = {
    "other order": scrambled,
    "other order of primals": with_shuffled_primals,
    "1 % inserted": lambda graph: inserted_at_random(graph, 0.01),
    "10 % inserted": lambda graph: inserted_at_random(graph, 0.1),
    "10 % replaced": lambda graph: replaced(graph, 0.1),
    "bfloat16": lambda graph: recast(graph, "bfloat16"),
}


@cache
def trace(path: str, level: str, layers: int, autocast: str | None = None) -> JointGraph:
    from aotcli.capture.trace import capture
    from aotcli.capture.workload import load_workload
    from aotcli.ir.trace import CaptureSettings

    settings = CaptureSettings(level=level, autocast=autocast, overrides=(("layers", str(layers)), *SMALL))
    return capture(load_workload(path, settings), settings).regions[0].graph


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., JointGraph]:
    """`gpt(level, layers=4, old="", new="")` is the graph of the sample model with `old` in its source become `new`."""
    folder = tmp_path_factory.mktemp("models")

    def of(level: str, layers: int = 4, old: str = "", new: str = "", autocast: str | None = None) -> JointGraph:
        path: Path = folder / f"{abs(hash((old, new)))}.py"
        assert old in GPT
        path.write_text(GPT.replace(old, new) if old else GPT, encoding="utf-8")
        return trace(str(path), level, layers, autocast)

    return of


def targets(graph: JointGraph, partners: tuple[int, ...]) -> Counter[str]:
    """Ops without a partner, without what takes their results apart."""
    free = [node for node, partner in zip(graph.nodes, partners, strict=True) if partner < 0]
    assert all(node.kind is NodeKind.OP for node in free)
    return Counter(node.target for node in free if node.target != "operator.getitem")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_real_graph(captured: Any, level: str, name: str):
    graph = captured("gpt", level).regions[0].graph
    edited = EDITS[name](graph).then(scrambled)
    pairing = match_graphs(graph, edited.graph)
    result = score(pairing, edited.truth)
    assert result.precision >= 0.98
    assert result.recall >= 0.98
    assert match_graphs(edited.graph, graph) == pairing.mirrored()
    if name.startswith("other order"):
        assert edit_cost(graph, edited.graph, pairing.right_of) == 0


def test_two_levels_of_one_model(captured: Any):
    """Decompositions apart, all that both have is paired, within the same modules."""
    aten, inductor = (captured("gpt", level).regions[0].graph for level in ("aten", "inductor"))
    pairing = match_graphs(aten, inductor)
    both = [(node, inductor.nodes[j]) for node, j in zip(aten.nodes, pairing.right_of, strict=True) if j >= 0]
    assert all(node.module == other.module for node, other in both)
    assert all(node.origin == other.origin for node, other in both if node.is_placeholder)
    same = {node.name for node, other in both if node.target == other.target or node.is_placeholder}
    kept = {"aten.mm.default", "aten.addmm.default", "aten.embedding.default"}
    attention = {node.target for node in aten.nodes if "attention" in node.target}
    wanted = {node.name for node in aten.nodes if node.is_placeholder or node.target in kept | attention}
    assert wanted <= same
    decomposed = set(targets(aten, pairing.right_of))
    assert {"aten.native_layer_norm.default", "aten.gelu.default"} <= decomposed
    assert not decomposed & (kept | attention)


@pytest.mark.parametrize("level", LEVELS)
def test_a_layer_less(gpt: Callable[..., JointGraph], level: str):
    left, right = gpt(level), gpt(level, layers=3)
    pairing = match_graphs(left, right)
    assert -1 not in pairing.left_of
    gone = [node for node, partner in zip(left.nodes, pairing.right_of, strict=True) if partner < 0]
    inside = [node for node in gone if (node.origin or node.module or "").startswith("h.3")]
    sums = [node.target for node in gone if node not in inside]
    assert sums == ["aten.add.Tensor"] * 2  # of the gradients of the layer's two branches; they belong to the model
    changed = [match for match in pairing.match if match is Match.CHANGED]
    assert not changed


def test_another_activation(gpt: Callable[..., JointGraph]):
    left, right = gpt("aten"), gpt("aten", old="F.gelu", new="F.silu")
    pairing = match_graphs(left, right)
    assert None not in pairing.match
    assert changes(left, right, pairing) == {
        ("aten.gelu.default", "aten.silu.default"): 4,
        ("aten.gelu_backward.default", "aten.silu_backward.default"): 4,
    }


def changes(left: JointGraph, right: JointGraph, pairing: Pairing) -> Counter[tuple[str, str]]:
    return Counter(
        (left.nodes[i].target, right.nodes[pairing.right_of[i]].target)
        for i, match in enumerate(pairing.match)
        if match is Match.CHANGED
    )


@pytest.mark.parametrize("level", LEVELS)
def test_attention_by_hand_and_fused(gpt: Callable[..., JointGraph], level: str):
    """The fused op and its backward go, in each layer; all else stays what it was."""
    fused, by_hand = gpt(level), gpt(level, old=FUSED, new=BY_HAND)
    pairing = match_graphs(fused, by_hand)
    gone = targets(fused, pairing.right_of)
    assert set(gone.values()) == {4}
    assert all("attention" in target for target in gone)
    new = targets(by_hand, pairing.left_of)
    assert new["aten.bmm.default"] == 6 * 4
    modules = [
        (node.module, by_hand.nodes[j].module) for node, j in zip(fused.nodes, pairing.right_of, strict=True) if j >= 0
    ]
    assert all(ours == theirs for ours, theirs in modules)
    back = match_graphs(by_hand, fused)
    assert back == pairing.mirrored()


@pytest.mark.parametrize("level", LEVELS)
def test_autocast_adds_casts_and_loses_nothing(gpt: Callable[..., JointGraph], level: str):
    left, right = gpt(level), gpt(level, autocast="bfloat16")
    pairing = match_graphs(left, right)
    assert -1 not in pairing.right_of
    casts = {"aten._to_copy.default", "prims.convert_element_type.default"}
    new = targets(right, pairing.left_of)
    assert set(new) <= casts
    assert new
    assert Match.CHANGED not in pairing.match


def test_other_names_of_modules_are_no_difference(gpt: Callable[..., JointGraph]):
    left = gpt("aten")
    right = gpt("aten", old="self.h", new="self.blocks")
    assert right.nodes != left.nodes
    assert set(match_graphs(left, right).match) == {Match.EXACT}
