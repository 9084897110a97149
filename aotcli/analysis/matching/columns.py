"""What a node has in common with others, as numbers: equal things get equal numbers in both graphs under comparison.

Names of nodes, symbols and storages are left out, and so are strides, device numbers, tags and source lines.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from aotcli.ir.fingerprint import fingerprint
from aotcli.ir.joint import PRIMAL_KINDS, Arg, Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, Value

GETITEM = "operator.getitem"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_REF = "%"


class Numbers:
    """Gives equal keys equal numbers, counted from 0 in the order of asking."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))

    def key(self, number: int) -> Hashable:
        """What a number stands for; takes as long as there are numbers."""
        return next(key for key, known in self._known.items() if known == number)


@dataclass(frozen=True, slots=True)
class Columns:
    """One number for each node and aspect.

    `op` is kind and target, with the index of a getitem; `form` the arguments, with places among the node's inputs
    for references; `shape` and `dtype` are those of the value. `module` is the path of the owning module, for a
    parameter that of the module that holds it; `leaf` is the rest of a parameter's or input's name.
    """

    op: list[int]
    form: list[int]
    shape: list[int]
    dtype: list[int]
    module: list[str | None]
    leaf: list[str | None]


def read_columns(graph: JointGraph, numbers: Numbers) -> Columns:
    reader = _Reader(graph, numbers)
    columns = Columns([], [], [], [], [], [])
    for node in graph.nodes:
        columns.op.append(reader.op(node))
        columns.form.append(reader.form(node))
        columns.shape.append(reader.shape(node.value))
        columns.dtype.append(reader.dtype(node.value))
        module, leaf = _place(node)
        columns.module.append(module)
        columns.leaf.append(leaf)
    return columns


def _place(node: Node) -> tuple[str | None, str | None]:
    if node.origin is None or node.kind not in PRIMAL_KINDS:
        return node.module, None
    owner, dot, leaf = node.origin.rpartition(".")
    return (owner if dot else ""), leaf


class _Reader:
    """Numbers the aspects of one graph's nodes. What is met often is looked up by its own value."""

    def __init__(self, graph: JointGraph, numbers: Numbers) -> None:
        self._numbers = numbers
        self._symbols = _symbol_names(graph)
        self._subgraphs = dict(graph.subgraphs)
        self._ops: dict[tuple[object, ...], int] = {}
        self._shapes: dict[object, int] = {}
        self._dtypes: dict[object, int] = {}

    def op(self, node: Node) -> int:
        item = repr(node.args[1]) if node.target == GETITEM and len(node.args) > 1 else ""
        key = (node.kind, node.target, item) if node.kind is NodeKind.OP else (node.kind,)
        number = self._ops.get(key)
        if number is None:
            # A parameter of one version may be a buffer, or an input, of the next.
            general = ("primal",) if node.kind in PRIMAL_KINDS else key
            number = self._ops[key] = self._numbers.of(("op", *general))
        return number

    def form(self, node: Node) -> int:
        if node.kind is NodeKind.OP:
            places: dict[str, int] = {}
            args = tuple([self._arg(arg, places) for arg in node.args])
            kwargs = tuple([(key, self._arg(arg, places)) for key, arg in node.kwargs]) if node.kwargs else ()
            return self._numbers.of((args, kwargs))
        if node.kind is NodeKind.ATTR and node.target in self._subgraphs:
            return self._numbers.of(("graph", fingerprint(self._subgraphs[node.target])))
        return -1

    def _arg(self, arg: Arg, places: dict[str, int]) -> Hashable:
        if isinstance(arg, Ref):
            return _REF, places.setdefault(arg.name, len(places))
        if isinstance(arg, tuple):
            return tuple([self._arg(part, places) for part in arg])
        if isinstance(arg, Const):
            return arg.kind, self._expression(arg.text) if arg.kind == "symbol" else arg.text
        if isinstance(arg, Slice):
            return "slice", *[self._arg(part, places) for part in (arg.start, arg.stop, arg.step)]
        if isinstance(arg, Mapping):
            return "map", *[(key, self._arg(part, places)) for key, part in arg.items]
        # To Python, 1, 1.0 and True are one key.
        return arg if type(arg) is int else repr(arg)

    def shape(self, value: Value) -> int:
        key = value.shape if isinstance(value, TensorSpec) else value
        number = self._shapes.get(key)
        if number is None:
            number = self._shapes[key] = self._numbers.of(("shape", self._outline(value)))
        return number

    def _outline(self, value: Value) -> Hashable:
        if isinstance(value, TensorSpec):
            return tuple([self._expression(dim) if isinstance(dim, str) else dim for dim in value.shape])
        if isinstance(value, SymbolSpec):
            return value.kind, self._expression(value.expr)
        if isinstance(value, OpaqueSpec):
            return value.kind, value.type_name
        return value if value is None else ("tuple", *[self._outline(part) for part in value])

    def dtype(self, value: Value) -> int:
        key = value.dtype if isinstance(value, TensorSpec) else value
        number = self._dtypes.get(key)
        if number is None:
            number = self._dtypes[key] = self._numbers.of(("dtype", _dtypes(value)))
        return number

    def _expression(self, text: str) -> str:
        return _IDENTIFIER.sub(lambda found: "$" if found[0] in self._symbols else found[0], text)


def _dtypes(value: Value) -> Hashable:
    if isinstance(value, TensorSpec):
        return value.dtype
    return tuple([_dtypes(part) for part in value]) if isinstance(value, tuple) else None


def _symbol_names(graph: JointGraph) -> frozenset[str]:
    return graph.symbol_names.union(*[_symbol_names(inner) for _, inner in graph.subgraphs])
