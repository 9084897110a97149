"""The builder behind tests/builders.py; see there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from aotcli.ir.fingerprint import fingerprint
from aotcli.ir.joint import PLACEHOLDER_KINDS, Arg, JointGraph, Node, NodeKind, Ref, Symbol, Tag, arg_refs
from aotcli.ir.tensor import Dim, OpaqueSpec, SymbolSpec, TensorSpec, Value, tensor_leaves

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
