"""Small joint graphs by hand, for tests that never import torch.

    g = GraphBuilder()
    w, x = g.param("w", (4, 4)), g.input("x", (2, 4))
    y = g.op("aten.mm.default", x, w, shape=(2, 4), tags={Tag.COMPUTE_INTENSIVE})
    t = g.tangent(shape=(2, 4))
    gw = g.op("aten.mm.default", g.view(x, (4, 2)), t, shape=(4, 4))
    graph = g.build(forward_outputs=[y], backward_outputs=[gw, None])

Every method that adds a node returns a `Ref`, which is what later ops take as an argument. Placeholders may be added at
any time: `build` moves them to the front. Ops that read a tangent, or another backward op, are marked backward.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from typing import Any

from graph_builder import GraphBuilder, with_fingerprint

from aotcli.ir.joint import JointGraph, Ref, Tag
from aotcli.ir.tensor import Dim, tensor_leaves
from aotcli.ir.trace import CaptureSettings, EagerSaved, Environment, GraphBreak, ModelInfo, Trace


def two_matmuls(*, level: str = "aten") -> JointGraph:
    """relu(x @ w1) @ w2 with its backward: the smallest graph with something to decide."""
    g = GraphBuilder(level=level)
    w1 = g.param("primals_1", (8, 16), origin="fc1.weight")
    w2 = g.param("primals_2", (16, 4), origin="fc2.weight")
    x = g.input("primals_3", (2, 8), origin="x")
    t = g.tangent("tangents_1", (2, 4))
    h = g.matmul(x, w1, (2, 16), module="fc1", module_type="Linear", source="net.py:3")
    r = g.pointwise("aten.relu.default", h, module="act", module_type="ReLU", source="net.py:4")
    y = g.matmul(r, w2, (2, 4), module="fc2", module_type="Linear", source="net.py:5")
    back = {"module": "fc2", "module_type": "Linear", "source": "net.py:5"}
    rt = g.view(r, (16, 2), target="aten.t.default", **back, backward=True)
    gw2 = g.matmul(rt, t, (16, 4), **back)
    w2t = g.view(w2, (4, 16), target="aten.t.default", **back, backward=True)
    gr = g.matmul(t, w2t, (2, 16), **back)
    back = {"module": "act", "module_type": "ReLU", "source": "net.py:4"}
    gh = g.pointwise("aten.threshold_backward.default", gr, r, 0, **back)
    back = {"module": "fc1", "module_type": "Linear", "source": "net.py:3"}
    xt = g.view(x, (8, 2), target="aten.t.default", **back, backward=True)
    gw1 = g.matmul(xt, gh, (8, 16), **back)
    return g.build([y], [gw1, gw2, None])


def layered(layers: int, *, width: int = 16, batch: int = 8, level: str = "aten") -> JointGraph:
    """A stack of equal residual blocks with its backward: what repeated layers look like in a record."""
    g = GraphBuilder(level=level)
    weights = [g.param(f"primals_{i + 1}", (width, width), origin=f"h.{i}.fc.weight") for i in range(layers)]
    x = g.input(f"primals_{layers + 1}", (batch, width), origin="x")
    t = g.tangent("tangents_1", (batch, width))
    kept: list[tuple[Ref, Ref]] = []
    for i, w in enumerate(weights):
        block = {"module": f"h.{i}", "module_type": "Block"}
        h = g.matmul(x, w, (batch, width), module=f"h.{i}.fc", module_type="Linear", source="net.py:7")
        r = g.pointwise("aten.gelu.default", h, source="net.py:8", **block)
        kept.append((x, h))
        x = g.pointwise("aten.add.Tensor", r, x, source="net.py:9", **block)
    grads: list[Ref] = []
    for i in reversed(range(layers)):
        source, h = kept[i]
        block = {"module": f"h.{i}", "module_type": "Block", "source": "net.py:8"}
        fc = {"module": f"h.{i}.fc", "module_type": "Linear", "source": "net.py:7"}
        gh = g.pointwise("aten.gelu_backward.default", t, h, **block)
        st = g.view(source, (width, batch), target="aten.t.default", backward=True, **fc)
        grads.append(g.matmul(st, gh, (width, width), **fc))
        wt = g.view(weights[i], (width, width), target="aten.t.default", backward=True, **fc)
        gx = g.matmul(gh, wt, (batch, width), **fc)
        t = g.pointwise("aten.add.Tensor", t, gx, **block)
    return g.build([x], [*reversed(grads), None])


_POINTWISE = ("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.maximum.default")
_UNARY = ("aten.relu.default", "aten.exp.default", "aten.tanh.default", "aten.sigmoid.default")


class RandomGraphs:
    """Random joint graphs: a forward DAG, then a backward that reads forward values and tangents.

    Everything follows from `seed`. All tensors have the shape (4, n) with n of 2, 4, 8 or 16, so that any two can be
    combined; there are matmuls, reductions, views, tuples with their getitems, random ops and checkpoint policies.
    """

    def __init__(self, seed: int, *, checkpoints: bool = True) -> None:
        self._random = random.Random(seed)
        self._g = GraphBuilder(level="aten")
        self._checkpoints = checkpoints

    def graph(self, forward_ops: int = 20, backward_ops: int = 20) -> JointGraph:
        rng, g = self._random, self._g
        sizes = (2, 4, 8, 16)
        params = [g.param(f"p{i}", (4, rng.choice(sizes)), origin=f"h.{i}.weight") for i in range(rng.randint(1, 3))]
        inputs = [g.input(f"x{i}", (4, rng.choice(sizes))) for i in range(rng.randint(1, 2))]
        values = [*params, *inputs]
        for _ in range(forward_ops):
            values += self._step(values, backward=False)
        outputs = rng.sample(values[-4:], k=min(2, len(values[-4:])))
        tangents = [g.tangent(shape=_shape(g, out)) for out in outputs]
        gradients = list(tangents)
        for _ in range(backward_ops):
            gradients += self._step([*gradients[-5:], rng.choice(gradients)], values, backward=True)
        chosen = [rng.choice([None, *gradients]) for _ in (*params, *inputs)]
        return g.build(outputs, [gradients[-1], *chosen[1:]])

    def _step(self, first: list[Ref], second: list[Ref] | None = None, *, backward: bool) -> list[Ref]:
        rng, g = self._random, self._g
        a = self._pick(first)
        b = self._pick(second if second is not None and rng.random() < 0.7 else first)
        module = f"h.{rng.randint(0, 2)}.{rng.choice(['fc', 'act'])}"
        fields: dict[str, Any] = {"module": module, "module_type": "Linear", "source": f"net.py:{rng.randint(1, 9)}"}
        if self._checkpoints and not backward and rng.random() < 0.08:
            fields["checkpoint"] = rng.choice(["MUST_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE"])
        if backward:
            fields["backward"] = True
        roll = rng.random()
        if roll < 0.2:
            return [g.matmul(a, b, (4, rng.choice((2, 4, 8, 16))), **fields)]
        if roll < 0.3:
            return [g.op("aten.sum.dim_IntList", a, [1], True, shape=(4, 2), **fields)]
        if roll < 0.4:
            return [g.view(a, _shape(g, a), **fields)]
        if roll < 0.48:
            pair = g.op("aten.var_mean.correction", a, [1], shapes=[(4, 2), (4, 2)], kwargs={"correction": 0}, **fields)
            fields.pop("checkpoint", None)
            return [g.getitem(pair, i, **fields) for i in range(2)]
        if roll < 0.52 and not backward:
            tags = {Tag.RANDOM, Tag.RANDOM_OP, Tag.NO_CSE, Tag.IMPURE}
            return [g.op("aten.bernoulli.p", a, 0.5, shape=_shape(g, a), tags=tags, **fields)]
        if roll < 0.7:
            return [g.pointwise(rng.choice(_UNARY), a, **fields)]
        return [g.pointwise(rng.choice(_POINTWISE), a, b, **fields)]

    def _pick(self, values: list[Ref]) -> Ref:
        """Mostly a recent value, so that graphs are long rather than wide."""
        return self._random.choice(values[-6:] if self._random.random() < 0.7 else values)


def random_graph(seed: int, forward_ops: int = 20, backward_ops: int = 20, *, checkpoints: bool = True) -> JointGraph:
    return RandomGraphs(seed, checkpoints=checkpoints).graph(forward_ops, backward_ops)


def _shape(g: GraphBuilder, ref: Ref) -> tuple[Dim, ...]:
    return tensor_leaves(g.value(ref))[0].shape


def count_calls(function: Callable[[], object]) -> int:
    """Python and C calls that `function` makes: work, counted so that a busy machine does not matter."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def sample_trace(*graphs: JointGraph, **fields: Any) -> Trace:
    """A trace around `graphs` (the two-matmul graph where none is given); `fields` are those of `Trace`."""
    regions = graphs or (two_matmuls(),)
    base = Trace(
        model=ModelInfo("net", "net.py", 192, 768, 0, 64, ("float32",), ("x f32[2,8]",)),
        environment=Environment(torch="2.13.0+cpu", device="cpu"),
        settings=CaptureSettings(level=regions[0].level),
        regions=regions,
        loss=False,
        breaks=tuple(GraphBreak("call to print", "net.py:9") for _ in regions[1:]),
        eager=EagerSaved(192, 768, 3),
    )
    return dataclasses.replace(base, **fields)


__all__ = [
    "GraphBuilder",
    "RandomGraphs",
    "count_calls",
    "layered",
    "random_graph",
    "sample_trace",
    "two_matmuls",
    "with_fingerprint",
]
