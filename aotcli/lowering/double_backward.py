"""A backward through a compiled backward is refused, whichever tensors the compiled backward was handed.

A compiled step has no graph behind its gradients, so a loss made of gradients (create_graph=True) cannot be
differentiated. PyTorch says so by an error that hangs on the tensors that were saved for the backward: where none of
them is a parameter or an input, no path leads from the gradients to the parameters, and `torch.autograd.grad` leaves
that part of a loss out without a word (torch 2.13; earlier ones hand out gradients without a graph at all). Here the
gradients of such a backward are tied to every leaf that the step depends on, by a node that raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from aotcli.capture import torch_private_split

_WATCHED = "aotcli.double_backward"
_VIEWS_ABOVE = 4
"""How many views, made by the runtime, may stand between an output and the compiled function that computed it."""


class DoubleBackwardError(RuntimeError):
    """A backward through the gradients of a compiled step."""

    def __init__(self) -> None:
        super().__init__(
            "a compiled step does not currently support double backward\n"
            "why: its gradients were asked for with create_graph=True, and compiled code has no graph behind them\n"
            "fix: run the part whose gradients are differentiated again uncompiled (torch.compiler.disable)"
        )


def refusing_double_backward(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """`compiled` with a watch over the backward of what it returns. A step without create_graph pays for one hook."""

    def run(*args: Any) -> Any:
        outputs = compiled(*args)
        for node in _compiled_nodes(outputs):
            if _WATCHED not in node.metadata:
                node.metadata[_WATCHED] = True
                node.register_hook(_tie_gradients)
        return outputs

    return run


def _compiled_nodes(outputs: Any) -> Iterator[Any]:
    """The autograd nodes of compiled functions, right behind `outputs` or behind views of what they gave."""
    for output in outputs if isinstance(outputs, (list, tuple)) else (outputs,):
        node = output.grad_fn if isinstance(output, Tensor) else None
        for _ in range(_VIEWS_ABOVE):
            if node is None or torch_private_split.is_compiled_node(node):
                break
            node = node.next_functions[0][0] if node.next_functions else None
        if node is not None and torch_private_split.is_compiled_node(node):
            yield node


def _tie_gradients(gradients: Any, _outputs_gradients: Any) -> Any:
    """A hook of a compiled function's node: under create_graph, gradients that lead to its leaves and refuse."""
    if not torch.is_grad_enabled():
        return None
    leaves = _leaves_above(torch_private_split.current_autograd_node())
    return _Refusing.apply(len(leaves), *leaves, *gradients) if leaves else None


def _leaves_above(node: Any) -> list[Tensor]:
    """The leaves that gradients of `node` flow to."""
    found: dict[int, Tensor] = {}
    seen, stack = {node}, [node]
    while stack:
        for following, _ in stack.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
                variable = getattr(following, "variable", None)  # only nodes of leaves have one
                if isinstance(variable, Tensor):
                    found[id(variable)] = variable
    return list(found.values())


class _Refusing(torch.autograd.Function):
    """Hands gradients on; a backward through them raises."""

    @staticmethod
    def forward(_context: Any, leaves: int, *tensors: Any) -> Any:
        return tensors[leaves:]

    @staticmethod
    def backward(_context: Any, *_gradients: Any) -> Any:
        raise DoubleBackwardError
