"""Plan files: what a capture planned is applied to the same step inside `torch.compile`, and to nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import LEVELS, SAMPLES
from steps import run_step, sample_step

import aotcli

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def regions_inside(sample: str, level: str) -> list[Any]:
    """The regions that a partitioner is handed when the real step is compiled at `level`; no code is generated."""
    from aotcli.capture import torch_private
    from aotcli.lowering.partitioner import live_region

    found: list[Any] = []

    def partition(gm: Any, joint_inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> Any:
        static = tuple(rest.get("static_lifetime_input_indices") or ())
        found.append(live_region(gm, joint_inputs, num_fwd_outputs, static, level).graph)
        partitioner = aotcli.Partitioner("mincut")
        return partitioner(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs, compiler=level, **rest)

    def compiler(gm: Any, _inputs: Any) -> Any:
        return torch_private.boxed(gm.forward)

    make = torch_private.inductor_backend if level == "inductor" else torch_private.aten_backend
    backend = make(partition, compiler, compiler)
    module, args, kwargs = sample_step(sample)
    run_step(module, args, kwargs, lambda step: torch.compile(step, backend=backend))
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_capture_and_the_compiler_see_one_graph(sample: str, level: str, captured: Any) -> None:
    shown = [region.graph.fingerprint for region in captured(sample, level).regions if region.graph.has_backward]
    assert [graph.fingerprint for graph in regions_inside(sample, level)] == shown
