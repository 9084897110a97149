"""A joint graph as fx holds it, turned into the torch-free record of aotcli/ir/joint.py. Reads only; never mutates."""

from __future__ import annotations

import builtins
import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from aotcli.capture import torch_private
from aotcli.capture.flops import FlopCounter
from aotcli.capture.op_facts import NodeTags, meta_tags, target_tags
from aotcli.capture.origins import Origins, path_of_source
from aotcli.errors import CaptureError
from aotcli.ir.fingerprint import fingerprint
from aotcli.ir.joint import Arg, Const, JointGraph, Node, NodeKind, Ref, Slice, Symbol
from aotcli.ir.joint import Mapping as MappingArg
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, Value

_RECOMPUTE_NAMES = ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE")


@dataclass(frozen=True)
class PrimalFacts:
    """What one flat input of a region is: its kind, and its name in the model or in the call."""

    kind: NodeKind
    origin: str | None


@dataclass
class SnapshotContext:
    """What a snapshot needs to know beyond the graph; one per capture, shared by its regions.

    `outside` is the module path given to forward ops that run in no module: that of their frame, or "(loss)" where
    that is the step around the model. `input_name` turns a Dynamo source into the input's name in the call.
    """

    origins: Origins
    level: str
    outside: str = ""
    input_name: Callable[[str], str] = path_of_source
    with_source: bool = False
    flops: FlopCounter = field(default_factory=FlopCounter)
    tags: NodeTags = field(default_factory=NodeTags)


def snapshot_joint(
    gm: fx.GraphModule,
    context: SnapshotContext,
    *,
    num_forward_outputs: int,
    static_indices: Sequence[int],
    primals: Mapping[int, PrimalFacts],
    has_backward: bool = True,
    name: str = "region0",
) -> JointGraph:
    """The record of a joint graph, taken before dead-code removal and common-subexpression elimination.

    `static_indices` counts primal placeholders; `primals` maps an index into the region's flat inputs to
    what it is. Raises CaptureError on a graph that fx allows and AOTAutograd never makes (call_module, call_method).
    """
    reader = _Reader(gm, context)
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    primal_nodes = [node for node in placeholders if torch_private.placeholder_role(node)[0] == "primal"]
    nodes = tuple(reader.node(node, primals, primal_nodes) for node in gm.graph.nodes)
    graph = JointGraph(
        nodes=nodes,
        num_forward_outputs=num_forward_outputs,
        level=context.level,
        static_inputs=tuple(n.name for i, n in enumerate(primal_nodes) if i in set(static_indices)),
        symbols=reader.symbols(),
        subgraphs=reader.subgraphs(),
        has_backward=has_backward,
        mutated=tuple(node.name for node in torch_private.mutated_primals(gm)),
        name=name,
    )
    return dataclasses.replace(graph, fingerprint=fingerprint(graph))


class _Reader:
    """Reads one fx graph; numbers storages in order of appearance."""

    def __init__(self, gm: fx.GraphModule, context: SnapshotContext) -> None:
        self._gm = gm
        self._context = context
        self._storages: dict[int, int] = {}
        self._storage_count = 0
        self._kept: list[Any] = []  # keeps storages alive while their addresses are keys
        self._shape_env: Any = None
        self._nested: dict[str, JointGraph] = {}
        self._owners = self._forward_owners()

    def _forward_owners(self) -> dict[int, tuple[str, str | None]]:
        """Module of each forward op by its sequence number, which its backward ops share."""
        owners: dict[int, tuple[str, str | None]] = {}
        for node in self._gm.graph.nodes:
            number = node.meta.get("seq_nr")
            if number is None or node.meta.get("partitioner_tag") == "is_backward":
                continue
            module, module_type = self._context.origins.module(node)
            owners.setdefault(number, (self._context.outside if module is None else module, module_type))
        return owners

    def _module(self, node: fx.Node) -> tuple[str | None, str | None]:
        module, module_type = self._context.origins.module(node)
        if module is not None or node.op != "call_function":
            return module, module_type
        number = node.meta.get("seq_nr")
        if number in self._owners and "stack_trace" in node.meta:
            return self._owners[number]
        return None, None

    def node(self, node: fx.Node, primals: Mapping[int, PrimalFacts], primal_nodes: Sequence[fx.Node]) -> Node:
        module, module_type = self._module(node)
        source, code = self._context.origins.line(node)
        kind, origin = self._kind(node, primals, primal_nodes)
        self._share_with_item(node)
        tags = self._context.tags.of(node) if node.op == "call_function" else meta_tags(node)
        return Node(
            name=node.name,
            kind=kind,
            target=self._target(node),
            args=() if node.op in ("placeholder", "get_attr") else tuple(self.arg(each) for each in node.args),
            kwargs=tuple((key, self.arg(each)) for key, each in node.kwargs.items()),
            value=self.value(node.meta.get("val")) if node.op != "output" else None,
            module=module,
            module_type=module_type,
            source=source,
            code=code if self._context.with_source else None,
            origin=origin,
            partitioner_tag=node.meta.get("partitioner_tag"),
            checkpoint=_policy(node.meta.get("recompute")),
            ac_graph_id=node.meta.get("ac_graph_id"),
            region_budget=torch_private.memory_budget_of(node),
            tags=tags,
            mutable_args=torch_private.mutable_argument_names(node) if node.op == "call_function" else (),
            binds=torch_private.bound_symbol(node),
            flops=self._flops(node),
        )

    def _kind(
        self, node: fx.Node, primals: Mapping[int, PrimalFacts], primal_nodes: Sequence[fx.Node]
    ) -> tuple[NodeKind, str | None]:
        if node.op == "output":
            return NodeKind.OUTPUT, None
        if node.op == "get_attr":
            return NodeKind.ATTR, None
        if node.op == "call_function":
            return NodeKind.OP, None
        if node.op != "placeholder":
            raise CaptureError(
                f"the joint graph holds a {node.op} node, {node.name}",
                why="AOTAutograd makes graphs of call_function nodes only; this graph was changed by someone else",
                fix="turn off what changes joint graphs (a custom pass of Inductor's, say), or --level aten",
            )
        role, index = torch_private.placeholder_role(node)
        if role != "primal":
            return NodeKind(role), None
        facts = primals.get(primal_nodes.index(node) if index is None else index)
        return (facts.kind, facts.origin) if facts is not None else (NodeKind.INPUT, None)

    def _target(self, node: fx.Node) -> str:
        if node.op == "get_attr":
            self._read_nested(str(node.target))
        return target_text(node.target)

    def _flops(self, node: fx.Node) -> int | None:
        if node.op != "call_function":
            return 0
        if isinstance(node.target, torch_private.HigherOrderOperator):
            graphs = [self._nested.get(str(n.target)) for n in node.all_input_nodes if n.op == "get_attr"]
            inner = [each.flops for graph in graphs if graph is not None for each in graph.nodes]
            if graphs and None not in inner:
                return sum(each for each in inner if each is not None)
        return self._context.flops.count(node)

    def _read_nested(self, target: str) -> None:
        if target in self._nested:
            return
        found: Any = self._gm
        for part in target.split("."):
            found = getattr(found, part)
        if isinstance(found, fx.GraphModule):
            outputs = next(n for n in found.graph.nodes if n.op == "output").args[0]
            count = len(outputs) if isinstance(outputs, (tuple, list)) else 1
            self._nested[target] = snapshot_joint(
                found,
                self._context,
                num_forward_outputs=count,
                static_indices=(),
                primals={},
                has_backward=False,
                name=target,
            )

    def subgraphs(self) -> tuple[tuple[str, JointGraph], ...]:
        return tuple(sorted(self._nested.items()))

    # Values.

    def value(self, value: Any) -> Value:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._symbol(value)
        if isinstance(value, dict):
            return tuple(self.value(each) for each in value.values())
        if isinstance(value, (tuple, list)):
            return tuple(self.value(each) for each in value)
        if value is None:
            return None
        if isinstance(value, (bool, int, float)):
            return SymbolSpec(type(value).__name__, repr(value), value)
        if torch_private.is_backward_state(value):
            return OpaqueSpec("backward_state", type(value).__name__)
        kind = "script" if torch_private.is_script_object(value) else "opaque"
        return OpaqueSpec(kind, type(value).__name__)

    def _tensor(self, value: torch.Tensor) -> TensorSpec:
        shape = sizes = tuple(value.shape)
        symbolic = any(type(dim) is not int for dim in shape)
        if symbolic:
            sizes = tuple(torch_private.size_hint(dim) for dim in shape)
            shape = tuple(self._dim(dim) for dim in shape)
        nbytes = math.prod(sizes) * value.dtype.itemsize
        storage, storage_nbytes = self._storage(value, nbytes)
        strided = value.layout is torch.strided
        return TensorSpec(
            shape=shape,
            stride=tuple(self._dim(dim) for dim in value.stride()) if strided else (),
            dtype=str(value.dtype).removeprefix("torch."),
            device=str(value.device),
            nbytes=nbytes,
            storage=storage,
            storage_nbytes=storage_nbytes,
            hint=sizes if symbolic else None,
        )

    def _storage(self, value: torch.Tensor, nbytes: int) -> tuple[int, int]:
        try:
            storage = value.untyped_storage()
        except NotImplementedError:  # sparse and other tensors without one storage
            return -1, nbytes
        key = storage._cdata
        if key not in self._storages:
            self._storages[key] = self._storage_count
            self._storage_count += 1
            self._kept.append(storage)
        return self._storages[key], torch_private.size_hint(storage.nbytes())

    def _share_with_item(self, node: fx.Node) -> None:
        """Let a getitem have the storage of the item that it takes: for higher-order ops tracing makes two."""
        if node.target is not operator.getitem:
            return
        source, item = node.args
        parts = source.meta.get("val") if isinstance(source, fx.Node) else None
        if not isinstance(parts, (tuple, list)) or type(item) is not int:
            return
        part, value = parts[item], node.meta.get("val")
        if not isinstance(part, torch.Tensor) or not isinstance(value, torch.Tensor):
            return
        try:
            taken, own = part.untyped_storage(), value.untyped_storage()
        except NotImplementedError:  # tensors without one storage
            return
        if taken._cdata in self._storages and own._cdata not in self._storages:
            self._storages[own._cdata] = self._storages[taken._cdata]
            self._kept.append(own)

    def _dim(self, dim: Any) -> int | str:
        if type(dim) is int:
            return dim
        if isinstance(dim, torch.SymInt):
            self._remember(dim)
            text = str(dim.node.expr)
            return int(text) if text.lstrip("-").isdigit() else text
        return int(dim)

    def _symbol(self, value: Any) -> SymbolSpec:
        self._remember(value)
        kind = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}[type(value)]
        hint = torch_private.size_hint(value) if kind == "int" else value.node.hint
        return SymbolSpec(kind, str(value.node.expr), hint)

    def _remember(self, value: Any) -> None:
        if self._shape_env is None:
            self._shape_env = value.node.shape_env

    def symbols(self) -> tuple[Symbol, ...]:
        if self._shape_env is None:
            return ()
        found = []
        for name, source, hint, lower, upper in torch_private.symbol_facts(self._shape_env):
            found.append(Symbol(name, self._context.input_name(source), _number(hint), _bound(lower), _bound(upper)))
        return tuple(sorted(found, key=lambda symbol: symbol.name))

    # Arguments.

    def arg(self, value: Any) -> Arg:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, fx.Node):
            return Ref(value.name)
        if isinstance(value, float):
            return value if math.isfinite(value) else Const("float", repr(value))
        if isinstance(value, (tuple, list)):
            return tuple(self.arg(each) for each in value)
        if isinstance(value, slice):
            return Slice(self.arg(value.start), self.arg(value.stop), self.arg(value.step))
        if isinstance(value, dict):
            return MappingArg(tuple((str(key), self.arg(each)) for key, each in value.items()))
        return _constant(value)


_CONSTANT_KINDS: tuple[tuple[type, str], ...] = (
    (torch.dtype, "dtype"),
    (torch.device, "device"),
    (torch.layout, "layout"),
    (torch.memory_format, "memory_format"),
    (complex, "complex"),
)


def _constant(value: Any) -> Const:
    for kind, name in _CONSTANT_KINDS:
        if isinstance(value, kind):
            return Const(name, str(value))
    if isinstance(value, (torch_private.OpOverload, torch_private.HigherOrderOperator)) or callable(value):
        return Const("op", target_text(value))
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return Const("symbol", str(value.node.expr))
    # The type says what it is; a repr may hold an address, which would differ from run to run.
    return Const("other", type(value).__qualname__)


def target_text(target: str | Callable[..., Any]) -> str:
    """An op's name in the field's spelling: ``aten.mm.default``, ``operator.getitem``, ``higher_order.cond``."""
    if isinstance(target, str):
        return target
    if isinstance(target, torch_private.OpOverload):
        return str(target)
    if isinstance(target, torch_private.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    name = getattr(target, "__name__", type(target).__name__)
    if getattr(operator, name, None) is target:
        return f"operator.{name}"
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    module = getattr(target, "__module__", None) or "torch"
    return f"{module.split('.')[0]}.{name}"


def _policy(value: Any) -> str | None:
    name = getattr(value, "name", None)
    return name if name in _RECOMPUTE_NAMES else None


def _number(value: Any) -> int | float | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _bound(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else None


__all__ = ["PrimalFacts", "SnapshotContext", "snapshot_joint", "target_tags", "target_text"]
