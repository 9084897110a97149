"""Inductor's graphs with nothing fused: its decompositions, seeds and partition, run op by op.

Generated code rounds in an order that depends on what was fused, and so on the plan. Op by op, a plan that keeps to the
rules gives the bits of any other, so that one wrong bit is a fault of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from aotcli.capture import torch_private, torch_private_split, torch_private_validate
from aotcli.capture.recorder import as_compiled
from aotcli.validation.observer import Observer


@dataclass(frozen=True)
class Unfused:
    """A Dynamo backend: Inductor up to its partitioner, and then the ops of each half as PyTorch runs them."""

    partitioner: Observer

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return torch_private_split.compile_with_inductor(gm, inputs, self.partitioner, _op_by_op)


def _op_by_op(gm: fx.GraphModule, _inputs: Sequence[Any], **_options: Any) -> Any:
    for target in torch_private_validate.random_prims():
        for node in gm.graph.find_nodes(op="call_function", target=target):
            node.target = _from_its_seed(target)
    gm.recompile()
    return torch_private.boxed(as_compiled(gm))


def _from_its_seed(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`op` as generated code runs it: what it draws depends on the seed that it is handed, and on nothing else."""

    def drawing(*args: Any, **options: Any) -> Tensor:
        seed = next(value for value in (*args, *options.values()) if isinstance(value, Tensor))
        with torch.random.fork_rng(devices=[seed.device] if seed.device.type == "cuda" else []):
            torch.manual_seed(int(seed))
            return op(*args, **options)

    return drawing
