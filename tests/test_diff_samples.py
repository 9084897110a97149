"""Differences of real captures: one GPT in versions (tests/versions.py), and what a person would say changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from aotcli import api
from aotcli.analysis.diff import diff_plans
from aotcli.api.diff import DiffResult
from aotcli.ir.difference import Aspect, Difference, Fate, Growth, Rewrite
from aotcli.ir.trace import CaptureSettings, Trace

MODEL = str(Path(__file__).with_name("versions.py"))
LEVELS = ("aten", "inductor")

pytest.importorskip("torch")


@cache
def version(level: str, **overrides: str) -> Trace:
    pairs = tuple(overrides.items())
    return api.trace(MODEL, settings=CaptureSettings(level=level, overrides=pairs), cache=False)


def compared(level: str, **overrides: str) -> Difference:
    """The base against another version, mirrored on the way."""
    left, right = version(level), version(level, **overrides)
    found = api.diff(left, right).difference
    assert api.diff(right, left).difference.mirrored().saved == found.saved
    assert sum(row.delta_bytes for row in found.saved) == found.saved_delta_bytes
    return found


def layered(found: Difference) -> list[Rewrite]:
    """Rewrites that are the same in all four layers."""
    return [row for row in found.rewrites if row.count == 4]


@pytest.mark.parametrize("level", LEVELS)
def test_another_activation(level: str) -> None:
    found = compared(level, act="silu")
    (rewrite,) = layered(found)
    ops = dict(rewrite.left.forward), dict(rewrite.right.forward)
    if level == "aten":
        assert ops == ({"gelu": 1}, {"silu": 1})
        assert found.rewrites == (rewrite,)
    else:
        assert "erf" in ops[0]
        assert "exp" in ops[1]
    assert found.saved_delta_bytes == 0
    assert {row.shown.module for row in found.contributors} == {"h.*"}
    assert [(each.what, each.left, each.right) for each in found.environment] == [("act", "default", "silu")]


def test_attention_by_hand() -> None:
    """The fused op became products, a mask and a softmax; what they save is found with its line."""
    level = "inductor"
    found = compared(level, attend="byhand")
    rewrite = layered(found)[0]
    assert ("attention", 1) in rewrite.left.forward
    assert dict(rewrite.right.forward)["bmm"] == 2
    assert found.saved_delta_bytes > 0
    added = [row for row in found.contributors if row.growth is Growth.ADDED]
    assert {row.shown.source.rpartition(":")[0] for row in added if row.shown.source} == {"tests/versions.py"}
    gone = [row for row in found.contributors if row.right_fate is Fate.ABSENT and row.left is not None]
    assert "attention lse" in {row.left.what for row in gone if row.left is not None}
    assert 0 < found.confidence.left_unpaired < 0.1 * len(version(level).regions[0].nodes)


def test_a_layer_less() -> None:
    found = compared("aten", layers="3")
    whole = [row for row in found.rewrites if row.whole]
    assert [(row.left.module, row.count) for row in whole] == [("h.3", 1)]
    assert all(row.shown.module.startswith("h.3") for row in found.contributors)
    assert {row.growth for row in found.contributors} == {Growth.REMOVED}
    assert found.right.totals.parameters < found.left.totals.parameters  # type: ignore[operator]


def test_another_batch() -> None:
    found = compared("aten", batch="4")
    assert {row.aspect for row in found.values} <= {Aspect.SHAPE, Aspect.ARGUMENTS}
    assert found.rewrites == ()
    assert {row.growth for row in found.contributors} == {Growth.GREW}


def test_a_model_against_a_record_is_captured_as_that_was(tmp_path: Path) -> None:
    record = tmp_path / "base.aot.json"
    api.save(version("aten", layers="3"), record)
    result = api.diff(record, MODEL)
    assert result.is_empty
    assert result.difference.environment == ()


def test_a_live_model_by_pytorchs_own_partitioner() -> None:
    mlp = str(Path(__file__).parents[1] / "sample_models" / "mlp.py")
    result = api.diff(f"{mlp}@torch-mincut", f"{mlp}@mincut", level="aten")
    assert result.difference.same_graph
    assert result.difference.saved_delta_bytes == 0
    assert isinstance(result, DiffResult)


def test_one_pairing_serves_several_plans() -> None:
    from diff_builders import planned

    from aotcli.analysis.diff_regions import pair_regions

    left, right = version("aten"), version("aten", act="silu")
    pairs = pair_regions(left.regions, right.regions)
    for strategy in ("mincut", "save-all", "recompute-all"):
        sides = planned(left, strategy), planned(right, strategy)
        assert diff_plans(*sides, pairs) == diff_plans(*sides)
