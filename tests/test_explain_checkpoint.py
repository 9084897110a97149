"""Rules as selective checkpoints, on records: which modules, which calls, what cannot be said, what would differ.

That PyTorch then does what the file says is held by tests/test_policy_torch.py.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any

import pytest
from builders import GraphBuilder, layered, sample_trace
from test_policy import norm_graph

from aotcli.analysis.explain_checkpoint import CheckpointPolicy, OpPolicy, as_checkpoint
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.errors import InputError
from aotcli.ir.joint import JointGraph
from aotcli.ir.policy import Action, PolicyRule
from aotcli.render.explain_python import render_checkpoint_python

SAVE, RECOMPUTE = Action.SAVE, Action.RECOMPUTE


def written(graph: JointGraph, *rules: PolicyRule) -> CheckpointPolicy:
    return as_checkpoint([graph], rules, Heuristic(), cse=True)


def table(policy: CheckpointPolicy) -> dict[tuple[str, ...], tuple[OpPolicy, ...]]:
    return {modules.paths: modules.ops for modules in policy.modules}


def test_an_op_that_is_alike_in_all_its_calls_is_named_once_for_all_layers() -> None:
    policy = written(layered(3), PolicyRule(RECOMPUTE, op="gelu"))
    assert table(policy) == {("h.0", "h.1", "h.2"): (OpPolicy("aten.gelu.default", every=RECOMPUTE),)}
    assert policy.limits == ()


def two_calls() -> JointGraph:
    """A block that calls one op twice."""
    g = GraphBuilder()
    x, t = g.input("x", (8, 8)), g.tangent("t", (8, 8))
    first = g.pointwise("aten.tanh.default", x, name="first", module="block")
    second = g.pointwise("aten.tanh.default", first, name="second", module="block")
    y = g.pointwise("aten.neg.default", second, module="block")
    grad = g.op("aten.mm.default", g.op("aten.mm.default", t, second, shape=(8, 8)), first, shape=(8, 8))
    return g.build([y], [grad])


def test_calls_that_differ_are_counted() -> None:
    policy = written(two_calls(), PolicyRule(RECOMPUTE, name="second"))
    assert table(policy) == {("block",): (OpPolicy("aten.tanh.default", calls=((1, RECOMPUTE),)),)}
    both = written(two_calls(), PolicyRule(RECOMPUTE, name="second"), PolicyRule(SAVE, name="first"))
    assert table(both)["block",] == (OpPolicy("aten.tanh.default", calls=((0, SAVE), (1, RECOMPUTE))),)


def test_modules_that_nest_are_one_checkpoint() -> None:
    policy = written(layered(2), PolicyRule(RECOMPUTE, module="h.*.fc"), PolicyRule(RECOMPUTE, op="gelu"))
    assert list(table(policy)) == [("h.0", "h.1")]
    assert {op.op for op in policy.modules[0].ops} == {"aten.mm.default", "aten.gelu.default"}


def test_an_op_with_several_results_is_one_tag() -> None:
    policy = written(norm_graph(), PolicyRule(RECOMPUTE, op="native_layer_norm", min_bytes=17))
    assert table(policy)["h.0.ln",] == (OpPolicy("aten.native_layer_norm.default", every=RECOMPUTE),)
    rules = (
        PolicyRule(SAVE, op="native_layer_norm", max_bytes=16),
        PolicyRule(RECOMPUTE, op="native_layer_norm"),
        PolicyRule(SAVE, op="mm"),
    )
    with pytest.raises(InputError, match="none of these rules") as caught:
        written(norm_graph(), *rules[:2])
    assert "one result of native layer norm of h.*.ln is to be saved and another not" in caught.value.why


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        ({"module": "(loss)"}, "gelu of (loss) is made outside the modules of the model"),
        ({"module": None}, "gelu (gelu) is made outside the modules of the model"),
        ({"ac_graph_id": 7}, "gelu of h.* lies in a module that the model checkpoints itself"),
        ({"target": "higher_order.thing"}, "thing of h.* is no op of torch.ops"),
    ],
)
def test_what_checkpointing_cannot_say(change: dict[str, Any], limit: str) -> None:
    graph = layered(1)
    nodes = tuple(dataclasses.replace(node, **change) if node.name == "gelu" else node for node in graph.nodes)
    with pytest.raises(InputError, match="none of these rules") as caught:
        written(dataclasses.replace(graph, nodes=nodes), PolicyRule(RECOMPUTE, name="gelu"))
    assert limit in caught.value.why
    assert "--strategy policy" in caught.value.fix


def test_at_level_inductor_only_ops_that_stay_whole() -> None:
    graph = layered(2, level="inductor")
    policy = written(graph, PolicyRule(RECOMPUTE, module="h.*.fc"), PolicyRule(RECOMPUTE, op="gelu"))
    assert list(table(policy)) == [("h.0.fc", "h.1.fc")]
    assert policy.limits == (
        "gelu of h.* may be a piece of another op, which checkpointing sees whole (--level aten shows it)",
    )


def test_what_goes_from_block_to_block_is_said_to_differ() -> None:
    """PyTorch saves what one checkpointed block hands to the next, though the rule says otherwise."""
    policy = written(layered(3), PolicyRule(RECOMPUTE, op="add"), PolicyRule(RECOMPUTE, op="gelu"))
    assert "add of h.* is saved, too" in policy.differences


def executed(policy: CheckpointPolicy, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The written module run against a stand-in for torch, so that its policy function can be called."""

    class Ops:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, part: str) -> Ops:
            return Ops(f"{self.name}.{part}")

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Ops) and other.name == self.name

        def __hash__(self) -> int:
            return hash(self.name)

    tags = types.SimpleNamespace(MUST_SAVE="MUST_SAVE", MUST_RECOMPUTE="MUST_RECOMPUTE", PREFER_SAVE="PREFER_SAVE")
    checkpoint = types.ModuleType("torch.utils.checkpoint")
    vars(checkpoint).update(
        CheckpointPolicy=tags, checkpoint=None, create_selective_checkpoint_contexts=lambda function: function
    )
    torch = types.ModuleType("torch")
    vars(torch).update(nn=types.SimpleNamespace(Module=object), ops=Ops("ops"))
    for name, module in (("torch", torch), ("torch.utils", torch), ("torch.utils.checkpoint", checkpoint)):
        monkeypatch.setitem(sys.modules, name, module)
    names: dict[str, Any] = {"__name__": "written"}
    exec(compile(render_checkpoint_python(sample_trace(), policy), "written.py", "exec"), names)  # noqa: S102
    return names


def test_the_written_policy_function_counts_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = written(two_calls(), PolicyRule(RECOMPUTE, name="second"), PolicyRule(SAVE, name="first"))
    names = executed(policy, monkeypatch)
    tanh, other = names["ops"].aten.tanh.default, names["ops"].aten.neg.default
    function = names["contexts"](0)
    for again in (False, True):  # the recomputation counts anew
        context = types.SimpleNamespace(is_recompute=again)
        asked = [function(context, op) for op in (tanh, other, tanh, tanh)]
        assert asked == ["MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_SAVE"]


def test_many_calls_are_written_as_ranges_and_long_lines_are_broken() -> None:
    calls = tuple((number, RECOMPUTE) for number in range(1, 60, 2)) + tuple((n, SAVE) for n in (2, 4, 10))
    modules = written(layered(1), PolicyRule(RECOMPUTE, op="gelu")).modules[0]
    long = dataclasses.replace(
        modules, paths=tuple(f"model.layers.{n}" for n in range(80)), ops=(OpPolicy("aten.mm.default", calls=calls),)
    )
    policy = CheckpointPolicy((PolicyRule(SAVE, name='odd"""name\\'),), (long,), ("a limit",), ("a difference",))
    text = render_checkpoint_python(sample_trace(), policy)
    assert "ops.aten.mm.default: {SAVE: (2, 4, 10), RECOMPUTE: range(1, 60, 2)}," in text
    assert max(map(len, text.splitlines())) <= 120
    assert "* a limit" in text
    assert "* a difference" in text
    compile(text, "written.py", "exec")
