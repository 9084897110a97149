"""Policies in the compiler, and as selective checkpointing that PyTorch runs without aotcli."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from halves import assert_same, assert_same_but_for_replay
from samples import LEVELS, ROOT, SAMPLES, SMALL
from steps import run_step, sample_step
from torch_oracle import replays

import aotcli
from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.errors import ConfigError, PlanImpossibleError, StrategyError
from aotcli.ir.difference import Fate
from aotcli.ir.partition import Category
from aotcli.lowering.split import split
from aotcli.strategies import load_strategy

torch = pytest.importorskip("torch")

ROUGH = """
[[rule]]
op = "aten.addmm*"
min_bytes = 1
action = "save"

[[rule]]
op = "relu"
action = "recompute"

[[rule]]
op = "mul"
action = "recompute"

[[rule]]
op = "native_layer_norm"
action = "recompute"
"""


# Where the rules ask for what cannot be: their multiplications read an input that the step changes.
IMPOSSIBLE = frozenset({("input_mutation", "aten"), ("input_mutation", "inductor")})


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(ROUGH, encoding="utf-8")
    return path


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_plans_of_every_sample_are_sound_and_run_as_planned(
    sample: str, level: str, captured: Any, policy_file: Path
) -> None:
    for region in captured(sample, level).regions:
        graph = region.graph
        strategy = load_strategy(f"policy:{policy_file}")
        if (sample, level) in IMPOSSIBLE:
            with pytest.raises(PlanImpossibleError) as caught:
                strategy.plan(graph, region)
            assert "of policy.toml" in caught.value.fix
            continue
        partition = strategy.plan(graph, region)  # ends in the verifier
        if not graph.has_backward:
            assert partition.saved == ()
            continue
        halves = cut(graph, decision_of(partition))
        forward, backward = split(region, partition)
        if replays(region, partition):
            assert_same_but_for_replay(halves.backward, backward, f"{sample} backward")
            continue
        assert_same(halves.forward, forward, graph, f"{sample} forward")
        assert_same(halves.backward, backward, graph, f"{sample} backward")


def planned_inside(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from aotcli.lowering import partitioner

    made: list[Any] = []
    original = partitioner.carry_out

    def noting(*args: Any, **rest: Any) -> Any:
        result = original(*args, **rest)
        made.append(result[1])
        return result

    monkeypatch.setattr(partitioner, "carry_out", noting)
    return made


def test_modules_mean_the_same_in_a_capture_and_inside_the_compiler(
    captured: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "modules.toml"
    text = '[[rule]]\nmodule = "h.*"\nsubmodules = false\nop = "gelu"\naction = "recompute"\n'
    path.write_text(text + '[[rule]]\nmodule = "h.1.ln1"\naction = "recompute"\n', encoding="utf-8")
    shown = aotcli.partition(captured("gpt", "aten").trace, strategy="policy", options={"policy": str(path)})
    usual = aotcli.partition(captured("gpt", "aten").trace)
    assert shown.saved_bytes < usual.saved_bytes

    made = planned_inside(monkeypatch)
    module, args, kwargs = sample_step("gpt")
    eager = run_step(module, args, kwargs)
    step = partial(aotcli.compile, strategy="policy", policy=str(path))
    assert not eager.differences(run_step(module, args, kwargs, step))
    (partition,) = made
    assert [value.name for value in partition.saved] == [value.name for value in shown.plan.partitions[0].saved]
    assert partition.notes == ()


def test_compiled_code_is_cached_under_the_content_of_the_policy_file(policy_file: Path) -> None:
    given = [aotcli.Partitioner("policy", policy=str(policy_file)), aotcli.Partitioner(f"policy:{policy_file}")]
    before = [partitioner.uuid() for partitioner in given]
    assert before == [partitioner.uuid() for partitioner in given]
    policy_file.write_text(ROUGH.replace('"mul"', '"sub"'), encoding="utf-8")
    assert all(old != partitioner.uuid() for old, partitioner in zip(before, given, strict=True))


def test_layers_have_their_numbers_where_dynamo_writes_them_as_attributes() -> None:
    from aotcli.capture.origins import path_of_source

    assert (
        path_of_source("L['self'].h.0.ln1") == path_of_source("L['self']._modules['h']._modules['0'].ln1") == "h.0.ln1"
    )


def test_what_is_wrong_with_a_policy_is_said_before_or_while_compiling(tmp_path: Path) -> None:
    with pytest.raises(StrategyError, match="no policy file"):
        aotcli.Partitioner("policy", policy=str(tmp_path / "none.toml"))
    bad = tmp_path / "bad.toml"
    bad.write_text('[[rule]]\nmodul = "h"\naction = "save"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="unknown key"):
        load_strategy(f"policy:{bad}").rules()  # type: ignore[attr-defined]


def test_a_policy_is_validated_like_any_strategy_in_spite_of_the_loss_around_the_model(tmp_path: Path) -> None:
    path = tmp_path / "validated.toml"
    path.write_text('[[rule]]\nmodule = "fc"\naction = "recompute"\n', encoding="utf-8")
    model = str(ROOT / "sample_models" / "mlp.py")
    result = aotcli.validate(model, strategy=f"policy:{path}", steps=1, timing=False)
    assert result.exit_code == 0, result.text()
    assert "matches nothing" not in result.text()


# Explanations of real models, and what comes of following them.


class Gpt:
    """A small GPT of the samples, as often as it is needed."""

    def __init__(self) -> None:
        path = ROOT / "sample_models" / "gpt.py"
        self._file = import_file(path, "sample_gpt_of_policies")
        self._sizes = {name: int(value) for name, value in SMALL["gpt"]}

    def model(self) -> Any:
        torch.manual_seed(0)
        return self._file.model(**{key: self._sizes[key] for key in ("layers", "width", "seq", "vocab")})

    def inputs(self) -> Any:
        torch.manual_seed(1)
        return self._file.inputs(**{key: self._sizes[key] for key in ("batch", "seq", "vocab")})

    def trace(self, model: Any, level: str = "aten") -> Any:
        return aotcli.trace(model, self.inputs(), loss=self._file.loss, level=level, name="gpt")

    def gradients(self, model: Any, run: Any = None) -> list[Any]:
        self._file.loss((model if run is None else run)(*self.inputs())).backward()
        return [parameter.grad for parameter in model.parameters()]


@pytest.fixture(scope="module")
def gpt() -> Gpt:
    return Gpt()


@pytest.fixture(scope="module")
def plain(gpt: Gpt) -> Any:
    """The small GPT at level aten, as it is."""
    return gpt.trace(gpt.model())


def import_file(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the compiler looks up what the code calls by the name of its module
    spec.loader.exec_module(module)
    return module


def saved_memory(result: Any) -> Counter[tuple[Any, ...]]:
    """The memory that a plan saves for the backward, by what made it."""
    found: Counter[tuple[Any, ...]] = Counter()
    for graph, partition in zip(result.trace.regions, result.plan.partitions, strict=True):
        makers = {
            storage_maker(graph, value.name) for value in partition.saved if value.category is Category.ACTIVATION
        }
        for node in makers:
            found[node.module, node_label(graph, node), str(node.value), node.source] += 1
    return Counter({(*key[:2], key[2].partition("storage")[0], key[3]): count for key, count in found.items()})


POLICIES: dict[str, dict[str, list[str]]] = {
    "an op of the blocks": {"recompute": ["h.*.gelu"]},
    "an op that returns a tuple, and a saved one": {"recompute": ["h.*.gelu", "h.*.ln1"], "save": ["h.*.fc"]},
    "a block with all its views": {"recompute": ["h.0"]},
    "an op whose views could be saved instead": {"recompute": ["h.*.qkv"]},
    "a saved op": {"save": ["h.1.add"]},
    "the whole model": {"recompute": ["(model)"]},
}


@pytest.mark.parametrize("wishes", POLICIES.values(), ids=POLICIES)
def test_the_written_checkpoints_lead_to_the_plan_of_the_policy(
    wishes: dict[str, list[str]], gpt: Gpt, plain: Any, tmp_path: Path
) -> None:
    explained = aotcli.explain(plain, **wishes)
    checkpoint = explained.checkpoint()
    assert checkpoint.limits == ()
    assert checkpoint.differences == ()
    (tmp_path / "written.toml").write_text(explained.policy_text(), encoding="utf-8")
    (tmp_path / "written.py").write_text(explained.checkpoint_python(), encoding="utf-8")

    by_policy = aotcli.partition(plain, strategy=f"policy:{tmp_path / 'written.toml'}")
    changed = import_file(tmp_path / "written.py", "written_policy").apply_policy(gpt.model())
    by_checkpoint = aotcli.partition(gpt.trace(changed), alternatives=False)
    assert saved_memory(by_policy) == saved_memory(by_checkpoint)
    assert by_policy.saved_bytes == by_checkpoint.saved_bytes == explained.plan.saved_bytes


def test_the_written_checkpoints_change_no_gradient_and_no_name(gpt: Gpt, plain: Any, tmp_path: Path) -> None:
    explained = aotcli.explain(plain, recompute=["h.*.gelu", "h.1.ln2"], save=["h.*.fc"])
    (tmp_path / "written.py").write_text(explained.checkpoint_python(), encoding="utf-8")
    apply_policy = import_file(tmp_path / "written.py", "written_policy").apply_policy
    eager = gpt.model()
    expected = gpt.gradients(eager)
    for compile_step in (None, partial(torch.compile, backend="aot_eager")):
        changed = apply_policy(gpt.model())
        assert list(changed.state_dict()) == list(eager.state_dict())
        found = gpt.gradients(changed, compile_step(changed) if compile_step else None)
        assert all(torch.allclose(*pair, rtol=1e-4, atol=1e-6) for pair in zip(expected, found, strict=True))


def test_where_checkpoints_lead_elsewhere_the_file_says_what_differs(gpt: Gpt, plain: Any, tmp_path: Path) -> None:
    """What one checkpointed module hands to the next is saved by PyTorch, whatever the policy says."""
    explained = aotcli.explain(plain, recompute=["h.*.add", "h.*.gelu"])
    checkpoint = explained.checkpoint()
    assert checkpoint.differences, "the residual stream from block to block"
    (tmp_path / "written.py").write_text(explained.checkpoint_python(), encoding="utf-8")
    changed = import_file(tmp_path / "written.py", "written_policy").apply_policy(gpt.model())
    wanted, found = saved_memory(explained), saved_memory(aotcli.partition(gpt.trace(changed), alternatives=False))
    said = {text.partition(" of ")[0]: text for text in checkpoint.differences}
    for what, text in ((found - wanted, "is saved, too"), (wanted - found, "is not saved")):
        for _, label, *_ in what:
            assert text in said[label]
    assert all(f"* {text}" in explained.checkpoint_python() for text in checkpoint.differences)


def test_following_the_printed_annotation_turns_the_decision_round(gpt: Gpt, plain: Any, tmp_path: Path) -> None:
    """Each of the largest saved values of a real model: its flip is written, applied, and captured anew."""
    explained = aotcli.explain(plain, top=3)
    for explanation in explained.explanations:
        assert explanation.flip is not None
        assert explanation.flip.change is not None
        wish = aotcli.explain(plain, recompute=explanation.flip.patterns)
        (tmp_path / "flip.py").write_text(wish.checkpoint_python(), encoding="utf-8")
        changed = import_file(tmp_path / "flip.py", "written_flip").apply_policy(gpt.model())
        again = aotcli.explain(gpt.trace(changed), explanation.flip.patterns[0])
        alike = [each for each in again.explanations if each.place.what == explanation.place.what]
        alike = [each for each in alike if (each.shape, each.modules) == (explanation.shape, explanation.modules)]
        assert alike, explanation.place
        assert all(each.fate is not Fate.SAVED for each in alike), explanation.place


def test_at_level_inductor_only_whole_ops_can_be_written(gpt: Gpt) -> None:
    trace = gpt.trace(gpt.model(), "inductor")
    assert aotcli.explain(trace, recompute=["h.*.fc"]).checkpoint().limits == ()
    mixed = aotcli.explain(trace, recompute=["h.*.fc", "h.*.mul"]).checkpoint()
    assert [modules.paths for modules in mixed.modules] == [("h.0.fc", "h.1.fc")]
    (limit,) = mixed.limits
    assert limit.startswith("mul of h.* may be a piece of another op")
    with pytest.raises(aotcli.errors.InputError, match="none of these rules") as caught:
        aotcli.explain(trace, recompute=["h.*.mul"]).checkpoint_python()
    assert "--level aten" in caught.value.fix


def test_a_plan_of_torchs_own_is_explained_and_amended() -> None:
    explained = aotcli.explain(
        str(ROOT / "sample_models" / "mlp.py"), strategy="torch-default", level="aten", cache=False
    )
    first = explained.explanations[0]
    assert first.fate is Fate.SAVED
    assert first.flip is not None
    assert first.flip.change is not None
    assert first.flip.change.rows[0].before is Fate.SAVED
    assert first.weight is None, "there was no cut"
