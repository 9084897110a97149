"""A copy of a function with its modules and tensors replaced, so that capture leaves those of the caller alone.

A notebook's ``def step(x, y): return loss(model(x), y)`` reads `model` from its globals: the copy reads a converted
one. Functions of the same globals that it calls are copied along.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from torch import nn

from aotcli.capture.fake import Converter, holds_tensor


class FunctionCopier:
    """Copies functions for one capture. `replaced` collects the modules and tensors that stand in for the caller's."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self._globals: dict[int, dict[str, Any]] = {}
        self._functions: dict[int, types.FunctionType] = {}
        self.replaced: dict[str, Any] = {}

    def copy(self, function: Any) -> Any:
        """The copy; what is no plain function, method or module is returned as it is."""
        if isinstance(function, nn.Module):
            return self._replace(type(function).__name__, function)
        if isinstance(function, types.MethodType) and isinstance(function.__self__, nn.Module):
            return types.MethodType(function.__func__, self._replace("self", function.__self__))
        return self._copy_plain(function) if isinstance(function, types.FunctionType) else function

    def _copy_plain(self, function: types.FunctionType) -> types.FunctionType:
        known = self._functions.get(id(function))
        if known is not None:
            return known
        scope = self._scope(function.__globals__)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        twin = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells or None)
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
        # Known before its own parts are looked at: functions may call each other.
        self._functions[id(function)] = twin
        for name, old, new in zip(function.__code__.co_freevars, function.__closure__ or (), cells, strict=True):
            new.cell_contents = self._replace(name, old.cell_contents)
        for name in set(_names(function.__code__)) & function.__globals__.keys():
            scope[name] = self._replace(name, function.__globals__[name], function.__globals__)
        return twin

    def _scope(self, names: dict[str, Any]) -> dict[str, Any]:
        """The copy of a function's globals. Nameless, or Dynamo would look them up in the module of that name."""
        scope = self._globals.get(id(names))
        if scope is None:
            scope = self._globals[id(names)] = {key: value for key, value in names.items() if key != "__name__"}
        return scope

    def _replace(self, name: str, value: Any, scope: dict[str, Any] | None = None) -> Any:
        """What stands in for a value that a function reads."""
        if isinstance(value, nn.Module):
            self.replaced[f"{name} {id(value)}"] = new = self._converter.copy_of(value)
            return new
        if holds_tensor(value):
            self.replaced[f"{name} {id(value)}"] = new = self._converter.tree(value)
            return new
        if isinstance(value, types.FunctionType) and (scope is None or value.__globals__ is scope):
            return self._copy_plain(value)
        return value


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that a code object and those inside it read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
