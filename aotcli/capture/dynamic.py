"""Dynamic dimensions of the inputs: from a file's `dynamic_shapes`, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from aotcli.capture import torch_private_build
from aotcli.errors import WorkloadError

_FORM = 'give {"tokens": {0: Dim("batch"), 1: Dim("length")}}, or a tuple with one entry for each argument'


def mark_all_dynamic(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Ask for a symbol in every dimension above 1; the model may still specialize one."""
    for value in _leaves([*args, *kwargs.values()]):
        for dim, size in enumerate(value.shape):
            if size > 1:
                torch_private_build.maybe_mark_dynamic(value, dim)


def mark_dynamic_shapes(shapes: Any, names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Demand what `shapes` says, in the forms of torch.export's ``dynamic_shapes``.

    By argument name, or by position; for a tensor a dict or a tuple by dimension, of ``Dim``, ``Dim.AUTO``, a name or
    None (static). Raises WorkloadError where it does not fit the inputs.
    """
    values = {**dict(zip(names, args, strict=False)), **kwargs}
    if isinstance(shapes, (tuple, list)):
        if len(shapes) != len(values):
            raise WorkloadError(f"dynamic_shapes has {len(shapes)} entries for {len(values)} inputs", fix=_FORM)
        shapes = dict(zip(values, shapes, strict=True))
    if not isinstance(shapes, Mapping):
        raise WorkloadError(f"dynamic_shapes is a {type(shapes).__name__}", fix=_FORM)
    for name, spec in shapes.items():
        if name not in values:
            raise WorkloadError(f"dynamic_shapes names {name!r}", why=f"the inputs are {', '.join(values)}", fix=_FORM)
        _mark(values[name], spec, str(name))


def _mark(value: Any, spec: Any, path: str) -> None:
    if spec is None:
        return
    if isinstance(value, Tensor):
        for dim, each in _by_dimension(value, spec, path):
            _mark_dimension(value, dim, each)
    elif isinstance(value, Mapping) and isinstance(spec, Mapping) and spec.keys() <= value.keys():
        for key, each in spec.items():
            _mark(value[key], each, f"{path}.{key}")
    elif isinstance(value, (list, tuple)) and isinstance(spec, (list, tuple)) and len(spec) == len(value):
        for position, each in enumerate(spec):
            _mark(value[position], each, f"{path}[{position}]")
    else:
        raise WorkloadError(f"dynamic_shapes of {path} does not fit a {type(value).__name__}", fix=_FORM)


def _by_dimension(value: Tensor, spec: Any, path: str) -> list[tuple[int, Any]]:
    items = list(spec.items()) if isinstance(spec, Mapping) else None
    if items is None and isinstance(spec, (list, tuple)) and len(spec) == value.dim():
        items = list(enumerate(spec))
    if items is None or not all(isinstance(dim, int) and -value.dim() <= dim < value.dim() for dim, _ in items):
        raise WorkloadError(f"dynamic_shapes of {path}: {spec!r} does not fit shape {tuple(value.shape)}", fix=_FORM)
    return [(dim % value.dim(), each) for dim, each in items]


def _mark_dimension(value: Tensor, dim: int, spec: Any) -> None:
    hint = str(getattr(spec, "type", ""))  # of Dim.AUTO, Dim.DYNAMIC and Dim.STATIC
    if spec is None or isinstance(spec, int) or hint.endswith("STATIC"):
        return
    if hint.endswith("AUTO"):
        torch_private_build.maybe_mark_dynamic(value, dim)
        return
    lower, upper = (getattr(spec, bound, None) for bound in ("min", "max"))
    torch_private_build.mark_dynamic(
        value, dim, lower=lower if isinstance(lower, int) and lower > 0 else None,
        upper=upper if isinstance(upper, int) and upper < 2**31 else None,
    )  # fmt: skip


def _leaves(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in _leaves(each)]
    return []
