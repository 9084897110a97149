"""Partition functions that spoil what PyTorch's default one makes, each in one way: a check must see it.

Given as ``tests/saboteurs.py:NAME``. A partition function is called twice, to be planned and to be compiled;
`second_call_...` ones behave until the second call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

Modules = tuple[fx.GraphModule, fx.GraphModule]
calls: dict[str, int] = {}


def _output(gm: fx.GraphModule) -> fx.Node:
    return next(iter(gm.graph.find_nodes(op="output")))


def _replace_output(gm: fx.GraphModule, place: int, make: Callable[[fx.Graph, fx.Node], fx.Node]) -> None:
    """Put another value in the place of one output; its metadata is the old one's."""
    output = _output(gm)
    values = list(output.args[0])  # type: ignore[arg-type]
    with gm.graph.inserting_before(output):
        new = make(gm.graph, values[place])
    new.meta = dict(values[place].meta)
    values[place] = new
    output.args = (tuple(values),)
    gm.recompile()


def _tensor_outputs(gm: fx.GraphModule) -> list[int]:
    values = _output(gm).args[0]
    return [i for i, value in enumerate(values) if isinstance(value, fx.Node)]  # type: ignore[arg-type]


def scale_output(gm: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> Modules:
    """The last of the forward's own outputs is one percent too large."""
    forward, backward = default_partition(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
    _replace_output(forward, num_fwd_outputs - 1, lambda graph, value: graph.call_function(torch.mul, (value, 1.01)))
    return forward, backward


def scale_mutation(gm: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> Modules:
    """The first value that is written back into a buffer or an input is one percent too large."""
    forward, backward = default_partition(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
    writes = forward.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    if not writes:
        _replace_output(forward, 0, lambda graph, value: graph.call_function(torch.mul, (value, 1.01)))
        return forward, backward
    with forward.graph.inserting_before(writes[0]):
        scaled = forward.graph.call_function(torch.mul, (writes[0].args[1], 1.01))
    writes[0].replace_input_with(writes[0].args[1], scaled)
    forward.recompile()
    return forward, backward


def swap_gradients(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Two gradients of one shape change places."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    values = list(_output(backward).args[0])  # type: ignore[arg-type]
    shapes: dict[Any, int] = {}
    for place in _tensor_outputs(backward):
        shape = tuple(values[place].meta["val"].shape)
        if shape in shapes:
            first = shapes[shape]
            values[first], values[place] = values[place], values[first]
            _output(backward).args = (tuple(values),)
            backward.recompile()
            return forward, backward
        shapes[shape] = place
    raise AssertionError("no two gradients have one shape")


def negate_gradients(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Every gradient has the wrong sign."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    for place in _tensor_outputs(backward):
        _replace_output(backward, place, lambda graph, value: graph.call_function(torch.neg, (value,)))
    return forward, backward


def nudge_gradients(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Every gradient is off in its fourth digit: as little as a wrong plan may do, and more than rounding does."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    for place in _tensor_outputs(backward):
        _replace_output(
            backward, place, lambda graph, value: graph.call_function(torch.ops.aten.mul.Tensor, (value, 1.0001))
        )
    return forward, backward


def draw_once_more(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """The backward draws a random number that nobody asked for."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    with backward.graph.inserting_before(_output(backward)):
        backward.graph.call_function(torch.rand, (3,))
    backward.recompile()
    return forward, backward


def redraw_masks(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Every dropout is drawn anew in the backward."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    for place in _tensor_outputs(backward):
        _replace_output(
            backward, place, lambda graph, value: graph.call_function(torch.nn.functional.dropout, (value,))
        )
    return forward, backward


def save_something_else(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Planned as the default partition, compiled as PyTorch's min cut: other values are saved than were planned."""
    calls["saved"] = calls.get("saved", 0) + 1
    function = default_partition if calls["saved"] % 2 else min_cut_rematerialization_partition
    return function(gm, joint_inputs, **rest)


_SCRATCH_ELEMENTS = 64 << 20


def inflate_peak(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """The backward takes 256 MiB that nobody planned."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    with backward.graph.inserting_before(_output(backward)):
        backward.graph.call_function(torch.empty, (_SCRATCH_ELEMENTS,))
    backward.recompile()
    return forward, backward


def _slow(value: torch.Tensor) -> torch.Tensor:
    time.sleep(0.05)
    return value


def sleep(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """The backward takes its time."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    place = _tensor_outputs(backward)[-1]
    _replace_output(backward, place, lambda graph, value: graph.call_function(_slow, (value,)))
    return forward, backward


def _ever_larger(value: torch.Tensor) -> torch.Tensor:
    calls["backward"] = calls.get("backward", 0) + 1
    return value * calls["backward"]


def change_with_every_backward(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """Each backward gives other gradients than the one before."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    place = _tensor_outputs(backward)[-1]
    _replace_output(backward, place, lambda graph, value: graph.call_function(_ever_larger, (value,)))
    return forward, backward


def _no_memory(value: torch.Tensor) -> torch.Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB")


def run_out_of_memory(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> Modules:
    """The backward does not fit."""
    forward, backward = default_partition(gm, joint_inputs, **rest)
    place = _tensor_outputs(backward)[-1]
    _replace_output(backward, place, lambda graph, value: graph.call_function(_no_memory, (value,)))
    return forward, backward
