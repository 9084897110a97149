"""Tensors that a step reads and no copy of it owns: globals of the model file, closures of a function.

Copying a step copies its modules and not what its code refers to by name. So that every copy starts from the same
values and trains its own, a copy puts its values into the shared tensors while it runs, and takes them out when
another one does. The tensors stay the same objects: compiled code that guards on them notices nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(eq=False)
class Values:
    """What one copy of a step has in the shared tensors: data, and gradients, in their order."""

    data: list[Tensor]
    gradients: list[Tensor | None]


@dataclass(eq=False)
class SharedTensors:
    """The shared tensors of a workload, each once; `start` is what they held at first."""

    tensors: tuple[Tensor, ...]
    start: tuple[Tensor, ...]
    _active: Values | None = field(default=None, repr=False)

    @classmethod
    def of(cls, found: Iterable[Tensor]) -> SharedTensors:
        """Those of `found` that are leaves."""
        tensors = tuple({id(tensor): tensor for tensor in found if tensor.is_leaf}.values())
        return cls(tensors, tuple(tensor.data for tensor in tensors))

    def values(self) -> Values:
        """The values of a new copy; what shares a storage goes on sharing one."""
        return Values(list(copy.deepcopy(self.start)), [None] * len(self.start))

    def put(self, values: Values) -> None:
        """Let the tensors hold `values`; what they held goes back to where it came from."""
        if self._active is values:
            return
        self._take()
        for tensor, data, gradient in zip(self.tensors, values.data, values.gradients, strict=True):
            tensor.grad = None
            tensor.data = data
            tensor.grad = gradient
        self._active = values

    def to_float64(self, values: Values) -> None:
        """Convert values in place."""
        self.put(values)
        self._take()
        values.data[:] = [each.double() if each.is_floating_point() else each for each in values.data]
        self._active = None

    def restore(self) -> None:
        """Let the tensors hold what they held at first."""
        self.put(Values(list(self.start), [None] * len(self.start)))

    def _take(self) -> None:
        if self._active is not None:
            self._active.data[:] = [tensor.data for tensor in self.tensors]
            self._active.gradients[:] = [tensor.grad for tensor in self.tensors]
