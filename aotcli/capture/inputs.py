"""Inputs on the command line: ``i64[2,128]<50257``, ``mask=bool[2,128]``, ``scale=0.5``.

    spec   := [NAME '='] (tensor | value)
    tensor := dtype '[' [dim {',' dim}] ']' ['>=' low] ['<' high] ['=' fill]
    value  := an integer, a float, true, false, none, or 'text'

Parsing is torch-free. Integers are drawn from [low, high), by default [0, 2); floats are normal, or uniform where a
range is given; `fill` sets every element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from aotcli.errors import WorkloadError

if TYPE_CHECKING:
    import torch

DTYPES: dict[str, str] = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "b8": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""Short names of dtypes, and torch's own."""
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
_LONG = {**{name: name for name in DTYPES.values()}, **DTYPES, **_ALIASES}
_SHORT = {long: "bool" if long == "bool" else short for short, long in DTYPES.items()}

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)"
_NAME = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*")
_DTYPE = re.compile(r"([A-Za-z_]\w*)\s*\[")
_DIM = re.compile(r"\s*(\d+)\s*")
_SUFFIX = re.compile(rf"\s*(>=|<|=)\s*({_NUMBER}|true|false)\s*")
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
_EXAMPLE = "--input 'i64[2,128]<50257' or --input 'mask=bool[2,128]'"


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input: a tensor of `dtype` and `shape`, or where `dtype` is None a `value`; by position where `name` is."""

    text: str
    name: str | None
    dtype: str | None = None
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    fill: float | None = None
    value: Any = None


def torch_dtype_name(text: str, *, option: str) -> str:
    """torch's name of a dtype given in either spelling: ``bf16`` and ``bfloat16`` are ``bfloat16``."""
    name = _LONG.get(text.removeprefix("torch."))
    if name is None:
        near = get_close_matches(text, _LONG, n=1, cutoff=0.3)
        fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(DTYPES)}"
        raise WorkloadError(f"{option}: unknown dtype {text!r}", fix=fix)
    return name


def describe_tensor(tensor: torch.Tensor) -> str:
    """``f32[8,1024]``."""
    return describe_shape(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))


def describe_shape(dtype: str, shape: tuple[int, ...]) -> str:
    """``f32[8,1024]`` from torch's name of a dtype."""
    return f"{_SHORT.get(dtype, dtype)}[{','.join(str(size) for size in shape)}]"


def parse_inputs(texts: tuple[str, ...]) -> tuple[InputSpec, ...]:
    """Every ``--input`` of a command line. Raises WorkloadError at the first that does not parse or repeats a name."""
    specs = tuple(parse_input(text) for text in texts)
    named = [spec.name for spec in specs if spec.name is not None]
    for name in named:
        if named.count(name) > 1:
            raise WorkloadError(
                f"--input: {name!r} is given twice", why="each input has one value", fix="leave one of them out"
            )
    return specs


def parse_input(text: str) -> InputSpec:
    """One spec. Raises WorkloadError that points at the character where parsing stopped."""
    found = _NAME.match(text)
    name, at = (found.group(1), found.end()) if found else (None, 0)
    head = _DTYPE.match(text, at)
    if head is None:
        return _parse_value(text, at, name)
    dtype = _LONG.get(head.group(1))
    if dtype is None:
        near = get_close_matches(head.group(1), _LONG, n=1, cutoff=0.3)
        raise _error(text, at, f"unknown dtype {head.group(1)!r}", f"did you mean {near[0]}?" if near else "")
    shape, at = _parse_shape(text, head.end())
    bounds: dict[str, float] = {}
    while at < len(text):
        suffix = _SUFFIX.match(text, at)
        if suffix is None:
            raise _error(text, at, "expected '<high', '>=low' or '=fill'")
        key = {"<": "high", ">=": "low", "=": "fill"}[suffix.group(1)]
        if key in bounds:
            raise _error(text, at, f"{suffix.group(1)!r} is given twice")
        bounds[key] = _number(suffix.group(2))
        at = suffix.end()
    spec = InputSpec(text, name, dtype, shape, **bounds)
    _check_range(spec)
    return spec


def _parse_shape(text: str, at: int) -> tuple[tuple[int, ...], int]:
    dims: list[int] = []
    empty = re.compile(r"\s*\]").match(text, at)
    if empty:
        return (), empty.end()
    while True:
        dim = _DIM.match(text, at)
        if dim is None:
            raise _error(text, at, "expected a size")
        dims.append(int(dim.group(1)))
        at = dim.end()
        if at >= len(text) or text[at] not in ",]":
            raise _error(text, at, "expected ',' or ']'")
        at += 1
        if text[at - 1] == "]":
            return tuple(dims), at


def _parse_value(text: str, at: int, name: str | None) -> InputSpec:
    rest = text[at:].strip()
    if rest.lower() in _WORDS:
        return InputSpec(text, name, value=_WORDS[rest.lower()])
    if re.fullmatch(_NUMBER, rest):
        return InputSpec(text, name, value=_number(rest))
    if len(rest) >= 2 and rest[0] == rest[-1] and rest[0] in "'\"":
        return InputSpec(text, name, value=rest[1:-1])
    raise _error(text, at, "expected a dtype and a shape, a number, true, false, none or 'text'")


def _check_range(spec: InputSpec) -> None:
    at = len(spec.text)
    if spec.fill is not None and (spec.low is not None or spec.high is not None):
        raise _error(spec.text, at, "a fill and a range exclude each other")
    if spec.dtype == "bool" and (spec.low is not None or spec.high is not None):
        raise _error(spec.text, at, "bool takes no range")
    low = spec.low if spec.low is not None else 0
    if spec.high is not None and spec.high <= low:
        raise _error(spec.text, at, f"the range from {low:g} to {spec.high:g} is empty")


def _number(text: str) -> float:
    if text in _WORDS:
        return bool(_WORDS[text])
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def _error(text: str, at: int, problem: str, hint: str = "") -> WorkloadError:
    pointer = f"  {text}\n  {' ' * at}^"
    return WorkloadError(f"--input does not parse: {problem} at character {at + 1}\n{pointer}", fix=hint or _EXAMPLE)


def materialize_inputs(specs: tuple[InputSpec, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The tensors and values of the specs, drawn from torch's current generator: (positional, by name)."""
    args = tuple(_materialize(spec) for spec in specs if spec.name is None)
    return args, {spec.name: _materialize(spec) for spec in specs if spec.name is not None}


def _materialize(spec: InputSpec) -> Any:
    import torch

    if spec.dtype is None:
        return spec.value
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.fill is not None:
        return torch.full(spec.shape, spec.fill).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, spec.shape).to(dtype)
    low = spec.low if spec.low is not None else 0
    if not (dtype.is_floating_point or dtype.is_complex):
        high = spec.high if spec.high is not None else max(2, int(low) + 2)
        return torch.randint(int(low), int(high), spec.shape).to(dtype)
    if spec.low is None and spec.high is None:
        return torch.randn(spec.shape).to(dtype)
    high = spec.high if spec.high is not None else low + 1
    return (torch.rand(spec.shape) * (high - low) + low).to(dtype)
