"""Private torch for validation: what the runtime keeps for the backward, and how it compiles while it is watched.

A continuation of torch_private.py; what is said there holds here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_COMPILED = "CompiledFunctionBackward"


@dataclass(frozen=True)
class HandedOver:
    """What one run of a compiled region's forward left for its backward, in calling order.

    `compiled_as` is AOTAutograd's number of the region: one that runs twice leaves two of these.
    """

    compiled_as: int
    tensors: tuple[torch.Tensor, ...]
    opaque: tuple[Any, ...]
    symints: tuple[Any, ...]


def handed_over(tensors: Iterable[torch.Tensor]) -> list[HandedOver]:
    """What each compiled region behind `tensors` holds for its backward, in the order in which the forwards ran.

    Read from the autograd nodes of AOTAutograd's runtime, before the backward.
    """
    nodes: dict[Any, None] = {}
    stack = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in nodes:
            continue
        nodes[node] = None
        stack.extend(following for following, _ in node.next_functions if following is not None)
    compiled = [node for node in nodes if type(node).__name__ == _COMPILED]
    return [_held_by(node) for node in sorted(compiled, key=lambda node: node._sequence_nr())]


def _held_by(node: Any) -> HandedOver:
    unchecked = getattr(node, "_tensors_no_vc_check", ())  # not before torch 2.12
    return HandedOver(
        compiled_as=int(getattr(getattr(type(node), "_forward_cls", None), "_aot_id", -1)),
        tensors=(*node.saved_tensors, *unchecked),
        opaque=tuple(getattr(node, "opaque_objects", ())),
        symints=tuple(node.symints),
    )


def compiling_as() -> int:
    """AOTAutograd's number of the region that it partitions now; -1 where it does not say."""
    from torch._functorch._aot_autograd.logging_utils import get_aot_compilation_context

    names, *_ = get_aot_compilation_context()
    number = names[0].partition("_")[0] if names else ""
    return int(number) if number.isdigit() else -1


@contextlib.contextmanager
def uncached(*, eager_random: bool) -> Iterator[None]:
    """Compile anew whatever caches hold; with `eager_random`, Inductor draws the numbers that eager draws."""
    import torch._functorch.config
    import torch._inductor.config

    with (
        torch._inductor.config.patch(force_disable_caches=True, fallback_random=eager_random),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield


@contextlib.contextmanager
def undonated() -> Iterator[None]:
    """Compile backwards that do not write into what was saved for them, so that they can run again."""
    import torch._functorch.config

    with torch._functorch.config.patch(donated_buffer=False):
        yield


def random_prims() -> frozenset[Any]:
    """Inductor's ops that draw random numbers from a seed that they are handed: the one tensor among the arguments."""
    import torch._inductor.inductor_prims

    names = ("inductor_random", "inductor_randint")
    return frozenset(getattr(torch.ops.prims, name).default for name in names)


def memory_events(profiler: Any) -> list[tuple[int, int]]:
    """(time in ns, bytes allocated or, negative, freed) of each event that a profiler of memory recorded on the CPU."""
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    return sorted((event.start_ns(), event.nbytes()) for event in events)
