"""From what a file or a module defines to a model and its inputs.

`model` is a module, a class, a function to trace, or a factory; `inputs` a tensor, tuple, dict, ``(tuple, dict)`` or
a factory. A function is a factory where nothing of its arguments is left open (defaults, ``--set``); otherwise it is
itself what is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from aotcli.capture.inputs import describe_tensor, materialize_inputs, parse_inputs
from aotcli.capture.overrides import Overrides, missing_arguments
from aotcli.capture.user_error import explain_error
from aotcli.capture.workload import Definition
from aotcli.errors import AotcliError, WorkloadError
from aotcli.ir.trace import CaptureSettings

TEMPLATE = """\
    import torch
    from torch import nn
    model = nn.Linear(16, 4)        # a module, a function, or a factory of one
    inputs = (torch.randn(8, 16),)  # a tuple, a dict, (tuple, dict), or a factory
    def loss(output):               # optional
        return output.square().mean()"""

_ABSENT = object()


def define_from_namespace(
    namespace: dict[str, Any], name: str, where: str, root: Path, settings: CaptureSettings, *, owned: bool = True
) -> Definition:
    """The workload `name` ("" is ``model``) of a file's or package's names; `where` names it in errors.

    `owned` says that the names were made by running the file now, so that nothing else uses them.
    """
    found = _find(namespace, name, where)
    names = _Parts(namespace, name, found)
    overrides = Overrides(settings.overrides)
    model = make_model(names.model, f"{where}:{name or 'model'}", root, overrides)
    if settings.inputs:
        args, kwargs = materialize_inputs(parse_inputs(settings.inputs))
    else:
        args, kwargs = _make_inputs(names, model, where, root, overrides)
    overrides.check_used(where)
    loss = names.get("loss") if settings.loss else None
    if loss is not None and not callable(loss):
        raise WorkloadError(f"{where}: `loss` is a {type(loss).__name__}", fix="make it a function loss(output)")
    in_output = False if loss is not None or not settings.loss else None
    shapes = names.get("dynamic_shapes")
    return Definition(model, args, kwargs, loss, shapes, in_output, namespace if owned else None, owned)


class _Parts:
    """Where the parts of a workload are looked up: an object that holds them, else ``NAME_inputs``, else ``inputs``."""

    def __init__(self, namespace: Mapping[str, Any], name: str, found: Any) -> None:
        held = _held(found)
        self.model = found if held is None else held["model"]
        self._namespace: Mapping[str, Any] = namespace if held is None else held
        self._prefix = f"{name}_" if held is None and name else ""

    def get(self, part: str) -> Any:
        """The part, or None."""
        own = self._namespace.get(self._prefix + part)
        return own if own is not None else self._namespace.get(part)


def _held(value: Any) -> Mapping[str, Any] | None:
    """The parts of an object or dict that holds both a model and inputs; None for any other."""
    if isinstance(value, Mapping):
        return value if {"model", "inputs"} <= value.keys() else None
    if isinstance(value, nn.Module) or inspect.isroutine(value):
        return None
    parts = {part: getattr(value, part, None) for part in ("model", "inputs", "loss", "dynamic_shapes")}
    return parts if parts["model"] is not None and parts["inputs"] is not None else None


def _find(namespace: Mapping[str, Any], name: str, where: str) -> Any:
    """What `name` (dotted, "" is ``model``) refers to."""
    first, *rest = (name or "model").split(".")
    value = namespace.get(first, _ABSENT)
    for attribute in rest:
        value = getattr(value, attribute, _ABSENT)
    if value is not _ABSENT:
        return value
    own = {key for key, each in namespace.items() if not key.startswith("_") and callable(each)}
    modules = sorted(
        key for key in own
        if inspect.isclass(namespace[key]) and issubclass(namespace[key], nn.Module)
        and namespace[key].__module__ == namespace.get("__name__")
    )  # fmt: skip
    if name:
        near = get_close_matches(name, own, n=3, cutoff=0.5) or modules[:5]
        fix = f"it has {', '.join(near)}" if near else "name a module, a class or a function of it"
        raise WorkloadError(f"{where} has no {name!r}", fix=fix)
    raise _incomplete(where, "model", modules)


def _incomplete(where: str, part: str, modules: list[str]) -> WorkloadError:
    also = ""
    if modules and part == "model":
        also = f"\n  or name one of its classes: {where}:{modules[0]}"
    return WorkloadError(
        f"{where} has no `{part}`",
        why="a model file gives `model` and `inputs`",
        fix=f"add what is missing of these lines:\n{TEMPLATE}{also}",
    )


def make_model(value: Any, what: str, root: Path, overrides: Overrides) -> Any:
    """The module or function to trace. Raises WorkloadError where `value` is neither and makes neither."""
    if isinstance(value, nn.Module):
        return _unwrap_compiled(value)
    if not callable(value):
        raise WorkloadError(
            f"{what} is a {type(value).__name__}", fix="`model` is a module, a function, or a factory without arguments"
        )
    arguments = overrides.arguments(value)
    missing = missing_arguments(value, arguments)
    if missing and not inspect.isclass(value):
        return value
    if missing:
        raise WorkloadError(
            f"{what} needs {', '.join(missing)}",
            fix=f"--set {missing[0]}=VALUE, or write `def model(): return {value.__name__}(...)`",
        )
    if not inspect.isclass(value) and _is_variadic(value):
        return value
    made = run_user_code(lambda: value(**arguments), f"{what} raised while building the model", root)
    if isinstance(made, nn.Module):
        return _unwrap_compiled(made)
    if callable(made):
        return made
    raise WorkloadError(f"{what} made a {type(made).__name__}", fix="return a module or a function")


def _unwrap_compiled(model: nn.Module) -> nn.Module:
    """The module inside what torch.compile returned: it is compiled anew, by the recording backend."""
    inner = model._modules.get("_orig_mod")
    return inner if inner is not None else model


def _is_variadic(function: Callable[..., Any]) -> bool:
    """A function of ``*args`` alone takes inputs: it is no factory."""
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def _make_inputs(
    names: _Parts, model: Any, where: str, root: Path, overrides: Overrides
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    value = names.get("inputs")
    if value is None:
        raise _incomplete(where, "inputs", [])
    if callable(value) and not isinstance(value, Tensor):
        factory = value
        arguments = overrides.arguments(factory)
        missing = missing_arguments(factory, arguments)
        if missing == ["model"]:
            arguments, missing = {**arguments, "model": model}, []
        if missing:
            raise WorkloadError(
                f"{where}: `inputs` needs {', '.join(missing)}",
                fix=f"--set {missing[0]}=VALUE, or give its arguments defaults",
            )
        value = run_user_code(lambda: factory(**arguments), f"{where}: `inputs` raised", root)
    return split_inputs(value, f"{where}: `inputs`")


def split_inputs(value: Any, what: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from the forms that `inputs` may have."""
    if isinstance(value, Tensor):
        return (value,), {}
    if isinstance(value, Mapping):
        return (), {str(key): each for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        if len(value) == 2 and isinstance(value[0], (tuple, list)) and isinstance(value[1], Mapping):
            return tuple(value[0]), {str(key): each for key, each in value[1].items()}
        return tuple(value), {}
    raise WorkloadError(f"{what} is a {type(value).__name__}", fix="give a tuple, a dict, (tuple, dict) or a tensor")


def run_user_code(run: Callable[[], Any], what: str, root: Path) -> Any:
    """Run code of the user's; whatever it raises becomes a WorkloadError with its line."""
    try:
        return run()
    except (AotcliError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise WorkloadError(
            what, why=explain_error(error, root), fix="mend that line; --debug shows the whole traceback"
        ) from error


def bind_inputs(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Names of the positional arguments. Raises WorkloadError where the inputs do not fit the model's signature."""
    function = model.forward if isinstance(model, nn.Module) else model
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return tuple(f"input{position}" for position in range(len(args)))
    title = f"{type(model).__name__}.forward" if isinstance(model, nn.Module) else _function_name(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise WorkloadError(
            f"the inputs do not fit {title}({_parameter_list(signature)}): {error}",
            why=f"given: {_describe(args, kwargs) or 'nothing'}",
            fix="change `inputs`, or give them as --input 'NAME=f32[8,16]', once for each",
        ) from None
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}{position}" for position in range(len(args) - len(names)))
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return tuple(names[: len(args)])


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _parameter_list(signature: inspect.Signature) -> str:
    shown = [str(each.replace(annotation=each.empty)) for each in signature.parameters.values()]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:8], "..."])


def _describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    def one(value: Any) -> str:
        return describe_tensor(value) if isinstance(value, Tensor) else type(value).__name__

    return ", ".join([*(one(value) for value in args), *(f"{key}={one(value)}" for key, value in kwargs.items())])
