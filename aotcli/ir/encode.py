"""Joint graphs as tables and rows, for the record.

A node is a template and a few integers. The template, kept once, holds all that equal nodes of different layers have
in common: op, arguments with references left open, value, module path with its numbers left open, source line. The row
is the template's label and, in this order: the jump of the name's number where it is not the next one of its stem; for
each reference the position of a placeholder, or minus the distance to an op; storages that are neither new nor those of
an argument; the numbers of the module path where they are not those of the row before. Rows of repeated layers then
differ by constant steps, and aotcli/ir/rows.py writes them once.

Values name a spec (a tensor without its storage): ``f32 8x1024`` has a new storage, the next number; ``f32 8x1024@0.1``
has that of the second tensor of the first reference; ``@-`` has none; ``@*`` has the one that the row says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from aotcli.errors import VerificationError
from aotcli.ir.constants import arg_to_json
from aotcli.ir.document import Json
from aotcli.ir.fields import to_json
from aotcli.ir.joint import JointGraph, Node, NodeKind, arg_refs
from aotcli.ir.names import default_stem, split_name, split_path
from aotcli.ir.rows import Row, Run, fold
from aotcli.ir.tensor import SymbolSpec, TensorSpec, Value, tensor_leaves

DEFAULT_DEVICE = "cpu"
DEFAULT_TAG = "is_forward"

_DTYPE = re.compile(r"(b?)(float|int|uint|complex)(\d+.*)")
_UNSAFE_IN_LABEL = re.compile(r"[@~\s]")


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense row-major tensor; a dimension of extent 0 counts as 1, as torch does it."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass
class Tables:
    """What graphs of one record share: specs, places and templates by label, and the tags of each op."""

    specs: dict[str, Json] = field(default_factory=dict[str, Json])
    ops: dict[str, Json] = field(default_factory=dict[str, Json])
    places: dict[str, Json] = field(default_factory=dict[str, Json])
    templates: dict[str, Json] = field(default_factory=dict[str, Json])
    _labels: dict[str, str] = field(default_factory=dict[str, str])
    _spec_labels: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    def spec(self, spec: TensorSpec) -> str:
        """The label of a tensor's layout."""
        key = (spec.shape, spec.stride, spec.dtype, spec.device, spec.nbytes, spec.storage_nbytes, spec.hint)
        label = self._spec_labels.get(key)
        if label is None:
            shape = "x".join(_UNSAFE_IN_LABEL.sub("", str(dim)) for dim in spec.shape)
            dtype = _DTYPE.sub(lambda m: f"{m[1]}{m[2][0]}{m[3]}", _UNSAFE_IN_LABEL.sub("", spec.dtype))
            label = self._spec_labels[key] = self._enter(self.specs, f"{dtype} {shape}".strip(), "~", _spec_json(spec))
        return label

    def place(self, pattern: str | None, node: Node, *, source: bool) -> str | None:
        """The label of where a node comes from; None where nothing is known."""
        code = node.code if source else None
        parts = {"module": pattern, "type": node.module_type, "source": node.source, "code": code}
        known: dict[str, Json] = {key: part for key, part in parts.items() if part is not None}
        if not known:
            return None
        # The label leaves the line out: moving code in a file then changes this table alone.
        return self._interned(self.places, pattern or ".", "~", known)

    def template(self, stem: str, template: dict[str, Json]) -> str:
        return self._interned(self.templates, stem, ".", template)

    def tags(self, node: Node) -> list[Json] | None:
        """A node's tags, or None where they are those of its op."""
        tags: list[Json] = [str(tag) for tag in sorted(node.tags)]
        usual = self.ops.setdefault(node.target, tags) if node.kind is NodeKind.OP else []
        return None if tags == usual else tags

    def _interned(self, table: dict[str, Json], stem: str, sign: str, content: dict[str, Json]) -> str:
        key = f"{sign}{content!r}{stem}"
        label = self._labels.get(key)
        if label is None:
            label = self._labels[key] = self._enter(table, stem, sign, content)
        return label

    def _enter(self, table: dict[str, Json], stem: str, sign: str, content: Json) -> str:
        count = self._counts[sign + stem] = self._counts.get(sign + stem, 0) + 1
        label = f"{stem}{sign}{count}" if count > 1 else stem
        if label in table:
            return self._enter(table, stem, sign, content)
        table[label] = content
        return label


def _spec_json(spec: TensorSpec) -> dict[str, Json]:
    found: dict[str, Json] = {"dtype": spec.dtype, "shape": list(spec.shape)}
    integers = [dim for dim in spec.shape if isinstance(dim, int)]
    if len(integers) < len(spec.shape) or spec.stride != contiguous_stride(integers):
        found["stride"] = list(spec.stride)
    if spec.device != DEFAULT_DEVICE:
        found["device"] = spec.device
    found["nbytes"] = spec.nbytes
    if spec.storage_nbytes != spec.nbytes:
        found["storage_nbytes"] = spec.storage_nbytes
    if spec.hint is not None:
        found["hint"] = list(spec.hint)
    return found


def graph_to_json(graph: JointGraph, tables: Tables, *, source: bool) -> dict[str, Json]:
    """`graph` as a JSON object over `tables`, which it fills. `source` keeps the text of source lines.

    Raises VerificationError where a node refers to one that is not before it.
    """
    data: dict[str, Json] = {
        "name": graph.name,
        "fingerprint": graph.fingerprint,
        "level": graph.level,
        "has_backward": graph.has_backward,
        "num_forward_outputs": graph.num_forward_outputs,
    }
    if graph.static_inputs != usual_static_inputs(graph.nodes):
        data["static_inputs"] = list(graph.static_inputs)
    if graph.mutated:
        data["mutated"] = list(graph.mutated)
    if graph.symbols:
        data["symbols"] = [to_json(symbol) for symbol in graph.symbols]
    data["nodes"] = [_item(item) for item in fold(_RowWriter(graph, tables, source=source).rows())]
    if graph.subgraphs:
        # Pairs and not an object: names may repeat in a graph that is still to be verified.
        data["subgraphs"] = [[name, graph_to_json(inner, tables, source=source)] for name, inner in graph.subgraphs]
    return data


def usual_static_inputs(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Parameters and buffers: the static inputs that need not be written."""
    return tuple(node.name for node in nodes if node.kind in (NodeKind.PARAM, NodeKind.BUFFER))


def _item(item: Row | Run) -> Json:
    """A row as ``label`` or ``[label, ints...]``; in a run, an integer that varies is ``[first, step]``."""
    if isinstance(item, Run):
        rows: list[Json] = []
        for (label, ints), steps in zip(item.rows, item.steps, strict=True):
            varying: list[Json] = [[a, b] if b else a for a, b in zip(ints, steps, strict=True)]
            rows.append([label, *varying] if varying else label)
        return {"repeat": item.repeat, "rows": rows}
    label, ints = item
    return [label, *ints] if ints else label


class _RowWriter:
    """Turns the nodes of one graph into rows, in one pass."""

    def __init__(self, graph: JointGraph, tables: Tables, *, source: bool) -> None:
        self._graph = graph
        self._tables = tables
        self._source = source
        self._numbers: dict[str, int] = {}  # the last number of each stem
        self._layers: tuple[int, ...] = ()  # the numbers of the last module path that had any
        self._fresh = 0

    def rows(self) -> list[Row]:
        try:
            inputs = self._graph.inputs_of
        except KeyError as error:
            raise VerificationError(f"{self._graph.name} refers to {error}, which it does not have") from None
        return [self._row(position, node, inputs[position]) for position, node in enumerate(self._graph.nodes)]

    def _row(self, position: int, node: Node, inputs: Sequence[int]) -> Row:
        ints: list[int] = []
        template: dict[str, Json] = {}
        stem = self._name(node, template, ints)
        if node.args:
            template["args"] = [arg_to_json(arg) for arg in node.args]
        if node.kwargs:
            template["kwargs"] = {key: arg_to_json(arg) for key, arg in node.kwargs}
        refs = self._references(position, node, inputs, ints)
        if node.value is not None:
            template["value"] = self._value(node.value, refs, ints)
        self._origin(node, template, ints)
        _facts(node, template, self._tables)
        return self._tables.template(stem, template), tuple(ints)

    def _name(self, node: Node, template: dict[str, Json], ints: list[int]) -> str:
        stem, number = split_name(node.name)
        if node.kind is NodeKind.OP:
            template["op"] = node.target
        else:
            template["kind"] = str(node.kind)
            if node.target != node.name:
                template["target"] = node.target
        if node.kind is not NodeKind.OP or stem != default_stem(node.target):
            template["name"] = stem
        jump = number - self._numbers.get(stem, first_number(node.kind))
        self._numbers[stem] = number
        if jump != 1:
            template["jump"] = True
            ints.append(jump)
        return stem

    def _references(self, position: int, node: Node, inputs: Sequence[int], ints: list[int]) -> list[int]:
        """Positions of what a node reads, each time it reads it; the integers that say so are appended."""
        if not inputs:
            return []
        nodes, index = self._graph.nodes, self._graph.index
        refs = [index[name] for name in _all_refs(node)]
        for source in refs:
            if source >= position:
                raise VerificationError(f"{node.name} reads {nodes[source].name}, which stands later")
            ints.append(source if nodes[source].is_placeholder else source - position)
        return refs

    def _value(self, value: Value, refs: Sequence[int], ints: list[int]) -> Json:
        if isinstance(value, TensorSpec):
            return self._tables.spec(value) + self._storage(value.storage, refs, ints)
        if isinstance(value, tuple):
            return [self._value(part, refs, ints) for part in value]
        if isinstance(value, SymbolSpec):
            return {"symbol": value.kind, "expr": value.expr, "hint": value.hint}
        return None if value is None else {"opaque": value.kind, "type": value.type_name}

    def _storage(self, storage: int, refs: Sequence[int], ints: list[int]) -> str:
        if storage == self._fresh:
            self._fresh += 1
            return ""
        if storage < 0:
            return "@-"
        for number, source in enumerate(refs):
            for part, leaf in enumerate(tensor_leaves(self._graph.nodes[source].value)):
                if leaf.storage == storage:
                    return f"@{number}.{part}" if part else f"@{number}"
        ints.append(storage)
        self._fresh = max(self._fresh, storage + 1)
        return "@*"

    def _origin(self, node: Node, template: dict[str, Json], ints: list[int]) -> None:
        """Module and origin, with the numbers of repeated layers left to the row."""
        module, layers = (None, ()) if node.module is None else split_path(node.module)
        place = self._tables.place(module, node, source=self._source)
        if place is not None:
            template["at"] = place
        if node.origin is not None:
            template["origin"], more = split_path(node.origin)
            layers += more
        if layers and layers != self._layers:
            template["layer"] = True
            ints.extend(layers)
            self._layers = layers


def _all_refs(node: Node) -> list[str]:
    """Names of the nodes that `node` reads, in argument order, repeats included."""
    return [name for arg in (*node.args, *(arg for _, arg in node.kwargs)) for name in arg_refs(arg)]


def first_number(kind: NodeKind) -> int:
    """The number before the first of a stem: fx calls the first op `add`, AOTAutograd the first input `primals_1`."""
    return -1 if kind in (NodeKind.OP, NodeKind.ATTR, NodeKind.OUTPUT) else 0


def _facts(node: Node, template: dict[str, Json], tables: Tables) -> None:
    """The rest of a node, where it is not the default."""
    if node.partitioner_tag != DEFAULT_TAG:
        template["tag"] = node.partitioner_tag
    tags = tables.tags(node)
    if tags is not None:
        template["tags"] = tags
    optional: dict[str, Json] = {
        "checkpoint": node.checkpoint,
        "ac_graph_id": node.ac_graph_id,
        "region_budget": node.region_budget,
        "binds": node.binds,
    }
    template.update({key: fact for key, fact in optional.items() if fact is not None})
    if node.mutable_args:
        template["mutable_args"] = list(node.mutable_args)
    if node.flops != 0:
        template["flops"] = node.flops
