"""A stack of blocks in versions, for tests of differences: other activations, a layer less, another dtype, ..."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from builders import GraphBuilder, sample_trace

from aotcli import api
from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.ir.difference import Difference
from aotcli.ir.joint import JointGraph, Ref
from aotcli.ir.trace import CaptureSettings, EagerSaved, ModelInfo, Trace

Activation = Callable[[GraphBuilder, Ref, dict[str, Any]], Ref]
Gradient = Callable[[GraphBuilder, Ref, Ref, dict[str, Any]], Ref]


def _simple(name: str) -> tuple[Activation, Gradient]:
    return (
        lambda g, x, at: g.pointwise(f"aten.{name}.default", x, **at),
        lambda g, t, x, at: g.pointwise(f"aten.{name}_backward.default", t, x, **at),
    )


def _decomposed() -> tuple[Activation, Gradient]:
    """gelu as five ops, with its gradient as three."""

    def forward(g: GraphBuilder, x: Ref, at: dict[str, Any]) -> Ref:
        half = g.pointwise("aten.mul.Tensor", x, 0.5, **at)
        scaled = g.pointwise("aten.mul.Tensor", x, 0.7071, **at)
        erf = g.pointwise("aten.erf.default", scaled, **at)
        one = g.pointwise("aten.add.Tensor", erf, 1, **at)
        return g.pointwise("aten.mul.Tensor", half, one, **at)

    def backward(g: GraphBuilder, t: Ref, x: Ref, at: dict[str, Any]) -> Ref:
        square = g.pointwise("aten.mul.Tensor", x, x, backward=True, **at)
        bell = g.pointwise("aten.exp.default", square, backward=True, **at)
        return g.pointwise("aten.mul.Tensor", t, bell, **at)

    return forward, backward


ACTIVATIONS: dict[str, tuple[Activation, Gradient]] = {
    "gelu": _simple("gelu"),
    "silu": _simple("silu"),
    "decomposed": _decomposed(),
}


def stack(
    layers: Sequence[int] | int = 4,
    *,
    act: str = "gelu",
    dtype: str = "float32",
    batch: int = 64,
    width: int = 64,
    extra: bool = False,
    level: str = "aten",
) -> JointGraph:
    """x + proj(act(fc(x))) in every layer, with its backward. `layers` may name the layers that there are; `extra` adds
    an op to every block."""
    numbers = list(range(layers)) if isinstance(layers, int) else list(layers)
    g = GraphBuilder(level=level)
    weights = [_weights(g, i, width, dtype) for i in numbers]
    x = g.input("x", (batch, width), dtype, origin="x")
    t = g.tangent("tangents_1", (batch, width), dtype)
    forward, backward = ACTIVATIONS[act]
    kept: list[tuple[Ref, Ref, Ref]] = []
    for i, (fc, proj) in zip(numbers, weights, strict=True):
        h = g.matmul(x, fc, (batch, 2 * width), dtype=dtype, **_at(i, "fc", 7))
        r = forward(g, h, _at(i, "", 8))
        if extra:
            r = g.pointwise("aten.clamp_min.default", r, -1, **_at(i, "", 9))
        y = g.matmul(r, proj, (batch, width), dtype=dtype, **_at(i, "proj", 10))
        kept.append((x, h, r))
        x = g.pointwise("aten.add.Tensor", x, y, **_at(i, "", 11))
    out, grads = x, []
    for i, (fc, proj), (source, h, r) in reversed(list(zip(numbers, weights, kept, strict=True))):
        grads += [_gradient(g, r, t, (2 * width, width), dtype, _at(i, "proj", 10))]
        gr = _back(g, t, proj, (batch, 2 * width), dtype, _at(i, "proj", 10))
        if extra:
            gr = g.pointwise("aten.where.self", gr, r, **_at(i, "", 9))
        gh = backward(g, gr, h, _at(i, "", 8))
        grads += [_gradient(g, source, gh, (width, 2 * width), dtype, _at(i, "fc", 7))]
        t = g.pointwise(
            "aten.add.Tensor", t, _back(g, gh, fc, (batch, width), dtype, _at(i, "fc", 7)), **_at(i, "", 11)
        )
    return g.build([out], [*reversed(grads), None])


def _weights(g: GraphBuilder, i: int, width: int, dtype: str) -> tuple[Ref, Ref]:
    return (
        g.param(f"fc_{i}", (width, 2 * width), dtype, origin=f"h.{i}.fc.weight", module=f"h.{i}.fc"),
        g.param(f"proj_{i}", (2 * width, width), dtype, origin=f"h.{i}.proj.weight", module=f"h.{i}.proj"),
    )


def _at(i: int, name: str, line: int) -> dict[str, Any]:
    module = f"h.{i}.{name}" if name else f"h.{i}"
    return {"module": module, "module_type": "Linear" if name else "Block", "source": f"net.py:{line}"}


def _gradient(g: GraphBuilder, x: Ref, t: Ref, shape: tuple[int, int], dtype: str, at: dict[str, Any]) -> Ref:
    xt = g.view(x, (*shape[:1], g.value(x).shape[0]), target="aten.t.default", backward=True, **at)
    return g.matmul(xt, t, shape, dtype=dtype, **at)


def _back(g: GraphBuilder, t: Ref, w: Ref, shape: tuple[int, int], dtype: str, at: dict[str, Any]) -> Ref:
    wt = g.view(w, g.value(w).shape[::-1], target="aten.t.default", backward=True, **at)
    return g.matmul(t, wt, shape, dtype=dtype, **at)


def stack_trace(*graphs: JointGraph, **fields: Any) -> Trace:
    """A trace around a stack, or around several regions."""
    regions = graphs or (stack(),)
    base = sample_trace(
        *regions,
        model=ModelInfo("net", "net.py", 65_536, 262_144, 0, 16_384, ("float32",), ("x f32[64,64]",)),
        breaks=(),
        eager=EagerSaved(1 << 20, 262_144, 8),
        settings=CaptureSettings(level=regions[0].level),
    )
    return dataclasses.replace(base, **fields)


def planned(trace: Trace | JointGraph, strategy: str = "mincut", name: str = "net") -> DiffSide:
    """A side of a difference."""
    trace = stack_trace(trace) if isinstance(trace, JointGraph) else trace
    return DiffSide(trace, api.partition(trace, strategy=strategy, alternatives=False).plan, name)


def difference(left: Trace | JointGraph, right: Trace | JointGraph, *strategies: str) -> Difference:
    """The difference of two steps, each planned by mincut or by its own strategy."""
    names = strategies or ("mincut",)
    return diff_plans(planned(left, names[0], "left"), planned(right, names[-1], "right"))
