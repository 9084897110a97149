"""Building a model on fake tensors, so that one of 70 billion parameters opens on a laptop.

Building under a plain FakeTensorMode fails for many models, whose constructors read small tensors (a drop-path schedule
from `torch.linspace`). So large tensors are born fake and small ones real (`LargeTensorsFake`); once the model and its
inputs stand, what is still real is converted (`Converter`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from aotcli.capture import torch_private_build

FAKE_ABOVE_ELEMENTS = 16_384
"""Factory calls above this size give fake tensors; schedules, tables and masks that constructors read lie below."""

_TensorMap = dict[int, tuple[Tensor, Tensor]]


class LargeTensorsFake(torch_private_build.dispatch_mode()):
    """A dispatch mode in which factory calls above `FAKE_ABOVE_ELEMENTS` elements give tensors of `fake_mode`."""

    def __init__(self, fake_mode: Any) -> None:
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(isinstance(value, Tensor) for value in _flat((args, kwargs))):
            result = func(*args, **kwargs)
        else:
            with self.fake_mode:
                result = func(*args, **kwargs)
            if not isinstance(result, Tensor) or result.numel() <= FAKE_ABOVE_ELEMENTS:
                result = func(*args, **kwargs)
        # nn.Module.to() swaps fake parameters, which weak references to them would forbid.
        torch_private_build.forget_converted(self.fake_mode)
        return result


@contextmanager
def large_tensors_fake(fake_mode: Any) -> Iterator[None]:
    """The context in which the user's code builds the model and its inputs."""
    with LargeTensorsFake(fake_mode), torch_private_build.sampling_skips_fake():
        yield


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _flat(each)
    else:
        yield value


class Converter:
    """Brings tensors to a dtype and device, each once, so that tied parameters and shared storages stay so.

    With a `fake_mode` they become fake as well. Only floating and complex tensors take the dtype.
    """

    def __init__(self, fake_mode: Any | None, *, dtype: torch.dtype | None, device: str) -> None:
        self._fake_mode = fake_mode
        self._dtype = dtype
        self._device = torch.device(device)
        self._done: _TensorMap = {}
        self._copies: dict[int, tuple[nn.Module, nn.Module]] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        """The converted twin of a tensor: the tensor itself where nothing has to change."""
        known = self._done.get(id(tensor))
        if known is None:
            # The original is held: the id of a dead tensor would come back as another's.
            known = self._done[id(tensor)] = (tensor, self._convert(tensor))
            self._done[id(known[1])] = (known[1], known[1])
        return known[1]

    def _convert(self, tensor: Tensor) -> Tensor:
        twin = tensor
        if self._fake_mode is not None and not torch_private_build.is_fake(tensor):
            twin = self._fake_mode.from_tensor(tensor)
        floating = twin.is_floating_point() or twin.is_complex()
        dtype = self._dtype if self._dtype is not None and floating else twin.dtype
        if (dtype, self._device.type) == (twin.dtype, twin.device.type):
            return twin
        with self._fake_mode or nullcontext(), torch.no_grad():
            moved = twin.detach().to(self._device, dtype)
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(moved, requires_grad=tensor.requires_grad)
        return moved.requires_grad_(tensor.requires_grad)

    def tree(self, value: Any) -> Any:
        """A structure of tuples, lists and dicts with every tensor converted."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            parts = [self.tree(each) for each in value]
            if isinstance(value, list):
                return parts
            return type(value)(*parts) if _is_named_tuple(value) else type(value)(parts)
        if type(value) is dict:
            return {key: self.tree(each) for key, each in value.items()}
        return value

    def module(self, model: nn.Module) -> None:
        """Convert a module in place: parameters, buffers, and tensors that are plain attributes."""
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = self.tensor(parameter)  # type: ignore[assignment]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = self.tensor(buffer)
            for name, value in list(vars(module).items()):
                if name not in ("_parameters", "_buffers", "_modules") and holds_tensor(value):
                    vars(module)[name] = self.tree(value)

    def copy_of(self, model: nn.Module) -> nn.Module:
        """A converted copy of a module, which stays as it is; data is not copied where it becomes fake."""
        known = self._copies.get(id(model))
        if known is not None:
            return known[1]
        memo: dict[int, Any] = {}
        for module in model.modules() if self._fake_mode is not None else ():
            held = [*module._parameters.values(), *module._buffers.values(), *_flat(list(vars(module).values()))]
            for tensor in held:
                if isinstance(tensor, Tensor):
                    memo[id(tensor)] = self.tensor(tensor)
        twin = copy.deepcopy(model, memo)
        self.module(twin)
        self._copies[id(model)] = (model, twin)
        return twin

    def function(self, function: Any) -> None:
        """Convert what a function made for us closes over: tensors and modules."""
        owner = getattr(function, "__self__", None)
        if isinstance(owner, nn.Module):
            self.module(owner)
        for cell in getattr(function, "__closure__", None) or ():
            if isinstance(cell.cell_contents, nn.Module):
                self.module(cell.cell_contents)
            elif holds_tensor(cell.cell_contents):
                cell.cell_contents = self.tree(cell.cell_contents)

    def namespace(self, names: dict[str, Any]) -> dict[str, Any]:
        """What of a file's globals has to be replaced: tensors, and structures of them. Modules change in place."""
        changed: dict[str, Any] = {}
        for name, value in names.items():
            if isinstance(value, nn.Module):
                self.module(value)
            elif not name.startswith("__") and holds_tensor(value):
                changed[name] = self.tree(value)
        return changed


def _is_named_tuple(value: tuple[Any, ...]) -> bool:
    return type(value).__base__ is tuple and getattr(type(value), "_fields", None) is not None


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or a structure with one in it."""
    if isinstance(value, (Tensor, list, tuple, dict)):
        return any(isinstance(each, Tensor) for each in _flat(value))
    return False


def tensors_of(names: dict[str, Any]) -> tuple[Tensor, ...]:
    """The tensors among a file's globals, those of its modules included."""
    found: list[Tensor] = []
    for value in names.values():
        if isinstance(value, nn.Module):
            found += [*value.parameters(), *value.buffers()]
        elif holds_tensor(value):
            found += [each for each in _flat(value) if isinstance(each, Tensor)]
    return tuple(found)
