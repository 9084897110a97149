"""Random ops of a step in float64 that draw the numbers of the step in its own precision.

A generator gives other numbers for another dtype, so a float64 reference of a model with dropout would have other
masks. Under this mode, a random op whose arguments were widened runs on arguments as narrow as before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from aotcli.capture import torch_private_build
from aotcli.capture.torch_private import pytree


class DrawsNarrow(torch_private_build.dispatch_mode()):
    """Random ops on float64 tensors run in `dtype`, and what they give is widened again."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        narrow_args, narrow_kwargs = pytree.tree_map(self._narrow, (args, kwargs))
        results = pytree.tree_map(_wide, func(*narrow_args, **narrow_kwargs))
        written = args[0] if args and isinstance(args[0], Tensor) else None
        if written is not None and written.dtype is torch.float64 and func.__name__.partition(".")[0].endswith("_"):
            return written.copy_(results)
        return results

    def _narrow(self, value: Any) -> Any:
        if isinstance(value, Tensor) and value.dtype is torch.float64:
            return value.to(self._dtype)
        return value


def _wide(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
