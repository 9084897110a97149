"""Compiled code is found again by another process, and never by what would have compiled something else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT

import aotcli

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys
import torch
import aotcli
from torch._dynamo.utils import counters

strategy, options = json.loads(sys.argv[1])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
x = torch.randn(4, 8, requires_grad=True)
aotcli.compile(net, strategy=strategy, backend="inductor", **options)(x).square().sum().backward()
expected = torch.autograd.grad(net(x).square().sum(), x)[0]
torch.testing.assert_close(x.grad, expected)
autograd, inductor = counters["aot_autograd"], counters["inductor"]
print("COUNTS", json.dumps({
    "autograd hits": autograd["autograd_cache_hit"],
    "autograd misses": autograd["autograd_cache_miss"],
    "bypasses": autograd["autograd_cache_bypass"] + inductor["fxgraph_cache_bypass"],
    "fx hits": inductor["fxgraph_cache_hit"],
    "fx misses": inductor["fxgraph_cache_miss"],
}))
"""


def run(cache: Path, package: Path, strategy: str = "mincut", **options: Any) -> dict[str, int]:
    """What the caches counted in a process of its own."""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "PYTHONPATH": str(package),
        "OMP_NUM_THREADS": "1",
    }
    script = [sys.executable, "-c", SCRIPT, json.dumps([strategy, options])]
    result = subprocess.run(script, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert "COUNTS" in result.stdout, result.stdout + result.stderr
    return json.loads(result.stdout.rpartition("COUNTS")[2])


def hit(counts: dict[str, int]) -> bool:
    assert not counts["bypasses"]
    assert bool(counts["autograd hits"]) != bool(counts["autograd misses"])
    return counts["autograd hits"] == 1


def copy_package(folder: Path) -> Path:
    """A copy of the package's sources, which nobody edits while a test runs."""
    shutil.copytree(ROOT / "aotcli", folder / "aotcli", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def cache(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which this model is compiled once, under `mincut`."""
    folder = tmp_path_factory.mktemp("inductor")
    assert not hit(run(folder, package))
    return folder


def test_a_second_process_finds_both_caches(cache: Path, package: Path) -> None:
    counts = run(cache, package)
    assert hit(counts)
    assert counts["fx hits"] == 2
    assert not counts["fx misses"]


@pytest.mark.parametrize(
    ("strategy", "options"), [("save-all", {}), ("mincut", {"max_distance": 7}), ("mincut", {"rng": "graphsafe"})]
)
def test_another_strategy_or_option_misses(cache: Path, package: Path, strategy: str, options: dict[str, Any]) -> None:
    assert not hit(run(cache, package, strategy, **options))
    assert hit(run(cache, package, strategy, **options))


def test_another_version_of_the_package_misses(cache: Path, tmp_path: Path, package: Path) -> None:
    changed = tmp_path / "aotcli"
    shutil.copytree(package / "aotcli", changed, ignore=shutil.ignore_patterns("__pycache__"))
    assert hit(run(cache, tmp_path)), "the same sources elsewhere are the same version"
    source = changed / "analysis" / "mincut.py"
    source.write_text(source.read_text("utf-8") + "\n# changed\n", "utf-8")
    assert not hit(run(cache, tmp_path))


def test_another_plan_in_the_same_file_misses(tmp_path: Path, package: Path) -> None:
    """The file's name is all that the strategy says; the key covers what is in it."""
    plan, folder = tmp_path / "plan.aot.json", tmp_path / "inductor"
    for strategy in ("save-all", "mincut"):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
        result = aotcli.partition(net, (torch.randn(4, 8, requires_grad=True),), strategy=strategy, tensors="real")
        aotcli.save(result, plan)
        assert not hit(run(folder, package, f"replay:{plan}"))
    assert hit(run(folder, package, f"replay:{plan}"))
