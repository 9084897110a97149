"""FLOPs of one node: the registered formulas of torch.utils.flop_counter, called once per distinct (op, shapes).

Counted as PyTorch counts: two per multiply-add of matrix products, convolutions and attention; other ops are 0. An op
that multiplies matrices but has no formula, and any op that is not PyTorch's own, is None: unknown, never zero.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_arg
from torch.utils import flop_counter

from aotcli.capture.op_facts import packet_of
from aotcli.capture.torch_private import HigherOrderOperator, OpOverload, size_hint

_HEAVY = re.compile(
    r"(^|_)(mm|bmm|addmm|baddbmm|matmul|conv|convolution|attention|fft|linalg|lstm|gru|rnn|einsum)(_|$)"
)

_aten = torch.ops.aten


def _cpu_flash(*args: Any, **kwargs: Any) -> int:
    query, key, value = (tuple(each) for each in args[:3])
    return flop_counter.sdpa_flop_count(query, key, value)


def _cpu_flash_backward(*args: Any, **kwargs: Any) -> int:
    grad, query, key, value = (tuple(each) for each in args[:4])
    return flop_counter.sdpa_backward_flop_count(grad, query, key, value)


# torch registers no formula for the CPU's flash attention.
_OWN = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _cpu_flash,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _cpu_flash_backward,
}


class FlopCounter:
    """Counts nodes, remembering each distinct (op, shapes)."""

    def __init__(self) -> None:
        self._seen: dict[Any, int | None] = {}

    def count(self, node: fx.Node) -> int | None:
        """FLOPs of a call_function node; None where they are unknown."""
        target = node.target
        if not isinstance(target, OpOverload):
            return None if isinstance(target, HigherOrderOperator) else 0
        packet = packet_of(target)
        formula = flop_counter.flop_registry.get(packet)
        if formula is None and packet not in _OWN:
            return _without_formula(target)
        args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda each: _shape_of(each.meta.get("val")))
        out = _shape_of(node.meta.get("val"))
        key = (target, repr(args), repr(kwargs), repr(out))
        if key not in self._seen:
            self._seen[key] = _apply(formula, _OWN.get(packet), args, kwargs, out)
        return self._seen[key]


@functools.cache
def _without_formula(target: OpOverload) -> int | None:
    heavy = bool(_HEAVY.search(packet_of(target).__name__)) or target.namespace not in ("aten", "prims", "inductor")
    return None if heavy and not target.namespace.startswith(("_c10d", "profiler", "inductor")) else 0


def _apply(formula: Any, own: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    if own is not None:
        return int(own(*args, **kwargs))
    on_shapes = inspect.unwrap(formula)
    try:
        if on_shapes is formula:
            # A raw formula reads dtypes or values of tensors; a meta tensor of the shape has both.
            args, kwargs, out = _meta_tensors((args, kwargs, out))
            return int(formula(*args, **kwargs, out_val=out))
        return int(on_shapes(*args, **kwargs, out_shape=out))
    except (TypeError, ValueError, AssertionError, IndexError, AttributeError, NotImplementedError):
        return None  # a formula that does not know this form of the op: unknown, and listed as such


def _shape_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.Size([size_hint(dim) for dim in value.shape])
    if isinstance(value, (list, tuple)):
        return tuple(_shape_of(each) for each in value)
    if isinstance(value, torch.SymInt):
        return size_hint(value)
    return value


def _meta_tensors(tree: Any) -> Any:
    if isinstance(tree, torch.Size):
        return torch.empty(tree, device="meta")
    if isinstance(tree, dict):
        return {key: _meta_tensors(each) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return tuple(_meta_tensors(each) for each in tree)
    return tree
