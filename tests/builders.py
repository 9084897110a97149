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
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aotcli.ir.joint import PLACEHOLDER_KINDS, Arg, JointGraph, Node, NodeKind, Ref, Symbol, Tag, arg_refs
from aotcli.ir.tensor import Dim, OpaqueSpec, SymbolSpec, TensorSpec, Value, tensor_leaves
from aotcli.ir.trace import CaptureSettings, EagerSaved, Environment, GraphBreak, ModelInfo, Trace

ITEMSIZE = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "uint8": 1, "bool": 1}


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


class GraphBuilder:
    """Adds nodes one by one; see the module's docstring."""

    def __init__(self, *, level: str = "aten", name: str = "region0", device: str = "cpu") -> None:
        self._level = level
        self._name = name
        self._device = device
        self._nodes: dict[str, Node] = {}
        self._symbols: dict[str, Symbol] = {}
        self._subgraphs: dict[str, JointGraph] = {}
        self._static: list[str] = []
        self._mutated: list[str] = []
        self._storages = 0
        self._counts: dict[str, int] = {}

    # Values.

    def spec(
        self,
        shape: Sequence[Dim],
        dtype: str = "float32",
        *,
        storage_of: Ref | None = None,
        stride: Sequence[Dim] | None = None,
        device: str | None = None,
        nbytes: int | None = None,
    ) -> TensorSpec:
        """A tensor's spec: contiguous, on a storage of its own unless `storage_of` names the tensor it is a view of."""
        hint = tuple(self._hint(dim) for dim in shape)
        nbytes = math.prod(hint) * ITEMSIZE[dtype] if nbytes is None else nbytes
        if storage_of is None:
            storage, storage_nbytes = self._storages, nbytes
            self._storages += 1
        else:
            base = tensor_leaves(self.value(storage_of))[0]
            storage, storage_nbytes = base.storage, base.storage_nbytes
        symbolic = any(isinstance(dim, str) for dim in shape)
        return TensorSpec(
            shape=tuple(shape),
            stride=contiguous_strides(hint) if stride is None else tuple(stride),
            dtype=dtype,
            device=device or self._device,
            nbytes=nbytes,
            storage=storage,
            storage_nbytes=storage_nbytes,
            hint=hint if symbolic else None,
        )

    def value(self, ref: Ref) -> Value:
        return self._nodes[ref.name].value

    def _hint(self, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        known = {name: symbol.hint for name, symbol in self._symbols.items()}
        return int(eval(dim, {"__builtins__": {}}, known))  # noqa: S307 - expressions written in the tests

    # Placeholders.

    def param(self, name: str, shape: Sequence[Dim], dtype: str = "float32", **fields: Any) -> Ref:
        return self._placeholder(NodeKind.PARAM, name, shape, dtype, fields, static=True)

    def buffer(self, name: str, shape: Sequence[Dim], dtype: str = "float32", **fields: Any) -> Ref:
        return self._placeholder(NodeKind.BUFFER, name, shape, dtype, fields, static=True)

    def input(self, name: str, shape: Sequence[Dim], dtype: str = "float32", **fields: Any) -> Ref:
        return self._placeholder(NodeKind.INPUT, name, shape, dtype, fields)

    def tangent(self, name: str | None = None, shape: Sequence[Dim] = (), dtype: str = "float32", **fields: Any) -> Ref:
        return self._placeholder(NodeKind.TANGENT, name or self._fresh("tangents"), shape, dtype, fields)

    def seed(self, name: str | None = None, *, backward: bool = False) -> Ref:
        kind = NodeKind.BACKWARD_SEED if backward else NodeKind.SEED
        name = name or self._fresh("bwd_rng_state" if backward else "fwd_rng_state")
        return self._placeholder(kind, name, (), "int64", {})

    def symint(self, name: str, *, hint: int, source: str = "L['x'].size()[0]", placeholder: str | None = None) -> Ref:
        """A symbolic size: the symbol, and the placeholder that binds it."""
        self._symbols[name] = Symbol(name, source, hint, 2, None)
        value = SymbolSpec("int", name, hint)
        placeholder = placeholder or f"{name}_in"
        return self._add(Node(placeholder, NodeKind.INPUT, placeholder, value=value, binds=name))

    def opaque(self, name: str, kind: str = "opaque", type_name: str = "Handle") -> Ref:
        return self._add(Node(name, NodeKind.INPUT, name, value=OpaqueSpec(kind, type_name)))

    def _placeholder(
        self, kind: NodeKind, name: str, shape: Sequence[Dim], dtype: str, fields: dict[str, Any], static: bool = False
    ) -> Ref:
        mutated = fields.pop("mutated", False)
        options = {key: fields.pop(key) for key in ("stride", "device", "nbytes", "storage_of") if key in fields}
        node = Node(name, kind, name, value=self.spec(shape, dtype, **options), **{"origin": name, **fields})
        if kind is NodeKind.TANGENT:
            node = dataclasses.replace(node, origin=None)
        if static:
            self._static.append(name)
        if mutated:
            self._mutated.append(name)
        return self._add(node)

    # Ops.

    def op(
        self,
        target: str,
        *args: Any,
        shape: Sequence[Dim] | None = None,
        dtype: str = "float32",
        value: Value = None,
        shapes: Sequence[Sequence[Dim]] | None = None,
        storage_of: Ref | None = None,
        stride: Sequence[Dim] | None = None,
        kwargs: dict[str, Any] | None = None,
        tags: Iterable[Tag] = (),
        name: str | None = None,
        backward: bool | None = None,
        **fields: Any,
    ) -> Ref:
        """An op. Its value is a tensor of `shape`, a tuple of tensors of `shapes`, or `value` as given.

        `fields` are those of `Node`: module, module_type, source, checkpoint, flops, ...
        """
        if shapes is not None:
            value = tuple(self.spec(each, dtype) for each in shapes)
        elif shape is not None:
            value = self.spec(shape, dtype, storage_of=storage_of, stride=stride)
        frozen = tuple(_frozen(arg) for arg in args)
        frozen_kwargs = tuple((key, _frozen(arg)) for key, arg in (kwargs or {}).items())
        if backward is None:
            backward = any(self._is_backward(each) for each in (*frozen, *(arg for _, arg in frozen_kwargs)))
        fields.setdefault("partitioner_tag", "is_backward" if backward else None)
        stem = target.split(".")[1] if target.count(".") >= 1 else target
        node = Node(
            name or self._fresh(stem),
            NodeKind.OP,
            target,
            frozen,
            frozen_kwargs,
            value,
            tags=frozenset(tags),
            **fields,
        )
        return self._add(node)

    def pointwise(self, target: str, *args: Any, **fields: Any) -> Ref:
        """A pointwise op whose result has the shape of its first argument unless `shape` is given."""
        if "shape" not in fields:
            like = tensor_leaves(self.value(next(arg for arg in args if isinstance(arg, Ref))))[0]
            fields |= {"shape": like.shape, "dtype": fields.get("dtype", like.dtype)}
        tags = {Tag.POINTWISE, Tag.RECOMPUTABLE, Tag.FUSIBLE, *fields.pop("tags", ())}
        return self.op(target, *args, tags=tags, **fields)

    def matmul(self, left: Any, right: Any, shape: Sequence[Dim], **fields: Any) -> Ref:
        fields.setdefault("flops", 2 * math.prod(self._hint(d) for d in shape) * self._inner(left))
        return self.op("aten.mm.default", left, right, shape=shape, tags={Tag.COMPUTE_INTENSIVE}, **fields)

    def _inner(self, ref: Ref) -> int:
        return tensor_leaves(self.value(ref))[0].sizes[-1]

    def view(self, base: Ref, shape: Sequence[Dim], *, target: str = "aten.view.default", **fields: Any) -> Ref:
        """A view: same storage as `base`."""
        dtype = tensor_leaves(self.value(base))[0].dtype
        tags = {Tag.VIEW, Tag.VIEW_SCHEMA, Tag.RECOMPUTABLE, Tag.FUSIBLE}
        return self.op(target, base, list(shape), shape=shape, dtype=dtype, storage_of=base, tags=tags, **fields)

    def getitem(self, source: Ref, index: int, /, **fields: Any) -> Ref:
        value = self.value(source)
        assert isinstance(value, tuple)
        tags = {Tag.RECOMPUTABLE, Tag.FUSIBLE, *fields.pop("tags", ())}
        return self.op("operator.getitem", source, index, value=value[index], tags=tags, **fields)

    def sym_size(self, source: Ref, dim: int, expr: str, /, **fields: Any) -> Ref:
        """A size read from a tensor at run time."""
        value = SymbolSpec("int", expr, self._hint(expr))
        return self.op("aten.sym_size.int", source, dim, value=value, **fields)

    def subgraph(self, target: str, graph: JointGraph, *, name: str | None = None) -> Ref:
        """The get_attr node of a graph nested in a higher-order op."""
        self._subgraphs[target] = graph
        value = OpaqueSpec("graph", "GraphModule")
        return self._add(Node(name or self._fresh(target), NodeKind.ATTR, target, value=value))

    def _is_backward(self, arg: Arg) -> bool:
        kinds = (NodeKind.TANGENT, NodeKind.BACKWARD_SEED)
        read = (self._nodes[name] for name in arg_refs(arg))
        return any(node.kind in kinds or node.partitioner_tag == "is_backward" for node in read)

    def _fresh(self, stem: str) -> str:
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = stem if count == 0 and stem != "tangents" else f"{stem}_{count + (stem == 'tangents')}"
            if name not in self._nodes:
                return name

    def _add(self, node: Node) -> Ref:
        assert node.name not in self._nodes, f"two nodes named {node.name}"
        self._nodes[node.name] = node
        return Ref(node.name)

    # The graph.

    def build(
        self,
        forward_outputs: Sequence[Any] = (),
        backward_outputs: Sequence[Any] | None = None,
        *,
        fingerprinted: bool = True,
        **fields: Any,
    ) -> JointGraph:
        """The graph. Without `backward_outputs` it is forward-only; the fingerprint is filled in unless told not to.

        `fields` are those of `JointGraph`: static_inputs, mutated, ...
        """
        outputs = (*(_frozen(o) for o in forward_outputs), *(_frozen(o) for o in backward_outputs or ()))
        placeholders = [node for node in self._nodes.values() if node.kind in PLACEHOLDER_KINDS]
        rest = [node for node in self._nodes.values() if node.kind not in PLACEHOLDER_KINDS]
        primals = [node for node in placeholders if node.kind in (NodeKind.PARAM, NodeKind.BUFFER, NodeKind.INPUT)]
        others = [node for node in placeholders if node not in primals]
        graph = JointGraph(
            nodes=_storages_in_order((*primals, *others, *rest, Node("output", NodeKind.OUTPUT, "output", (outputs,)))),
            num_forward_outputs=len(forward_outputs),
            level=self._level,
            **{
                "static_inputs": tuple(node.name for node in primals if node.name in self._static),
                "symbols": tuple(sorted(self._symbols.values(), key=lambda symbol: symbol.name)),
                "subgraphs": tuple(sorted(self._subgraphs.items())),
                "has_backward": backward_outputs is not None,
                "mutated": tuple(self._mutated),
                "name": self._name,
                **fields,
            },
        )
        return with_fingerprint(graph) if fingerprinted else graph


def with_fingerprint(graph: JointGraph) -> JointGraph:
    from aotcli.ir.fingerprint import fingerprint

    return dataclasses.replace(graph, fingerprint=fingerprint(graph))


def _frozen(arg: Any) -> Arg:
    return tuple(_frozen(each) for each in arg) if isinstance(arg, (list, tuple)) else arg


def _storages_in_order(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Storages numbered by first appearance, as a capture numbers them."""
    numbers: dict[int, int] = {-1: -1}

    def renumber(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(renumber(part) for part in value)
        if isinstance(value, TensorSpec):
            return dataclasses.replace(value, storage=numbers.setdefault(value.storage, len(numbers) - 1))
        return value

    return tuple(dataclasses.replace(node, value=renumber(node.value)) for node in nodes)


# Ready-made graphs.


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
