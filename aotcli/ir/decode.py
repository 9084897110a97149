"""Tables and rows of a record as joint graphs again: the inverse of aotcli/ir/encode.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aotcli.ir.constants import Hole, Pattern, fill
from aotcli.ir.document import Json, Place
from aotcli.ir.encode import first_number, usual_static_inputs
from aotcli.ir.fields import from_json
from aotcli.ir.joint import Arg, JointGraph, Node, Ref, Symbol
from aotcli.ir.names import join_name, join_path
from aotcli.ir.templates import Template, Tensor, ValuePattern
from aotcli.ir.tensor import TensorSpec, Value

_MOST_NESTED = 16
_MOST_COST_BYTES = 160_000_000  # about 200,000 nodes
_MOST_REPEATS = 1_000_000
_LARGEST_NUMBER = 1_000_000_000


@dataclass
class Budget:
    """What expanding rows may still cost: a short file can ask for many nodes."""

    left_bytes: int = _MOST_COST_BYTES

    def spend(self, cost_bytes: int, place: Place) -> None:
        self.left_bytes -= cost_bytes
        if self.left_bytes < 0:
            raise place.error("it asks for more nodes than any record has")


def graph_from_json(
    data: Json, templates: Mapping[str, Template], budget: Budget, place: Place, depth: int = 0
) -> JointGraph:
    """The graph that `graph_to_json` wrote. Raises RecordError where it did not write this."""
    if depth > _MOST_NESTED:
        raise place.error(f"graphs nested deeper than {_MOST_NESTED}")
    given = place.object(data)
    reader = _RowReader(templates, budget)
    items = place.array(place.field(given, "nodes"))
    for number, item in enumerate(items):
        reader.item(item, place / "nodes" / number)
    nodes = tuple(reader.nodes)
    static = given.get("static_inputs")
    nested = [place.array(pair, 2) for pair in place.array(given.get("subgraphs", []))]
    return JointGraph(
        nodes=nodes,
        num_forward_outputs=place.integer(place.field(given, "num_forward_outputs"), 0),
        level=place.text(place.field(given, "level")),
        static_inputs=usual_static_inputs(nodes) if static is None else _texts(static, place / "static_inputs"),
        symbols=tuple(from_json(Symbol, each, place / "symbols") for each in place.array(given.get("symbols", []))),
        subgraphs=tuple(
            (place.text(name), graph_from_json(inner, templates, budget, place / "subgraphs" / i, depth + 1))
            for i, (name, inner) in enumerate(nested)
        ),
        has_backward=place.boolean(place.field(given, "has_backward")),
        mutated=_texts(given.get("mutated", []), place / "mutated"),
        name=place.text(place.field(given, "name")),
        fingerprint=place.text(place.field(given, "fingerprint")),
    )


def _texts(data: Json, place: Place) -> tuple[str, ...]:
    return tuple(place.text(text) for text in place.array(data))


class _RowReader:
    """Builds the nodes of one graph, row by row; parts that do not vary are shared between nodes."""

    def __init__(self, templates: Mapping[str, Template], budget: Budget) -> None:
        self._templates = templates
        self._budget = budget
        self.nodes: list[Node] = []
        self._refs: list[Ref] = []
        self._storages: list[tuple[int, ...]] = []  # of each tensor of each node
        self._numbers: dict[str, int] = {}
        self._layers: tuple[int, ...] = ()
        self._fresh = 0
        self._paths: dict[tuple[str, tuple[int, ...]], str] = {}

    def item(self, item: Json, place: Place) -> None:
        """One row, or one run of rows."""
        if not isinstance(item, dict):
            template, ints, steps = self._row(item, place)
            if any(steps):
                raise place.error("an integer that varies stands outside a run")
            self._budget.spend(template.cost_bytes, place)
            self._node(template, ints, place)
            return
        repeat = place.integer(place.field(item, "repeat"), 1, _MOST_REPEATS)
        rows = [self._row(row, place) for row in place.array(place.field(item, "rows"))]
        self._budget.spend(repeat * sum(template.cost_bytes for template, _, _ in rows), place)
        for _ in range(repeat):
            for number, (template, ints, steps) in enumerate(rows):
                self._node(template, ints, place)
                if steps:
                    after = [a + b for a, b in zip(ints, steps, strict=True)]
                    rows[number] = (template, after, steps)

    def _row(self, data: Json, place: Place) -> tuple[Template, list[int], list[int]]:
        """A row's template, integers, and their steps; no steps where no integer varies."""
        label, *rest = data if isinstance(data, list) and data else [data]
        template = self._templates.get(place.text(label))
        if template is None:
            raise place.error(f"the template {label!r} is not in the table")
        if len(rest) != template.ints:
            raise place.error(f"a row of {label!r} has {template.ints} integers, and this one has {len(rest)}")
        if all(type(number) is int for number in rest):
            return template, [place.integer(number) for number in rest], []
        pairs = [place.array(pair, 2) if isinstance(pair, list) else [pair, 0] for pair in rest]
        ints = [place.integer(first) for first, _ in pairs]
        return template, ints, [place.integer(step) for _, step in pairs]

    def _node(self, template: Template, ints: Sequence[int], place: Place) -> None:
        stem = template.stem
        used = 0
        number = self._numbers.get(stem, first_number(template.kind)) + 1
        if template.jump:
            number += ints[0] - 1
            used = 1
        if not 0 <= number < _LARGEST_NUMBER:
            raise place.error(f"the number of a node named {stem} is out of range")
        self._numbers[stem] = number
        name = join_name(stem, number)
        sources = self._sources(ints[used : used + template.refs], place)
        used += template.refs
        told = ints[used : used + template.told]
        value, storages = self._value(template.value, sources, told, place)
        if template.layer:
            self._layers = tuple(ints[used + template.told :])
            if not 0 <= min(self._layers, default=0) <= max(self._layers, default=0) < _LARGEST_NUMBER:
                raise place.error("the number of a layer is out of range")
        module, origin = self._module(template, place)
        args, kwargs = self._arguments(template, sources)
        self.nodes.append(
            Node(
                name,
                template.kind,
                name if template.target is None else template.target,
                args,
                kwargs,
                value,
                module,
                template.place.module_type,
                template.place.source,
                template.place.code,
                origin,
                template.tag,
                template.checkpoint,
                template.ac_graph_id,
                template.region_budget,
                template.tags,
                template.mutable_args,
                template.binds,
                template.flops,
            )
        )
        self._refs.append(Ref(name))
        self._storages.append(storages)

    def _sources(self, ints: Sequence[int], place: Place) -> list[int]:
        here = len(self.nodes)
        sources = [number if number >= 0 else here + number for number in ints]
        if sources and not 0 <= min(sources) <= max(sources) < here:
            raise place.error("a node reads one that does not stand before it")
        return sources

    def _arguments(
        self, template: Template, sources: Sequence[int]
    ) -> tuple[tuple[Arg, ...], tuple[tuple[str, Arg], ...]]:
        refs = iter([self._refs[source] for source in sources])
        args = tuple([_filled(arg, refs) for arg in template.args])
        if not template.kwargs:
            return args, ()
        return args, tuple([(key, _filled(arg, refs)) for key, arg in template.kwargs])

    def _module(self, template: Template, place: Place) -> tuple[str | None, str | None]:
        """Module path and origin, their open numbers filled from the layer."""
        module, origin = template.place.module, template.origin
        holes = template.module_holes
        wanted = holes + template.origin_holes
        if wanted and len(self._layers) != wanted:
            raise place.error("the numbers of the layer do not fit the module path")
        if module is not None:
            module = self._path(module, self._layers[:holes])
        if origin is not None:
            origin = self._path(origin, self._layers[holes : holes + template.origin_holes])
        return module, origin

    def _path(self, pattern: str, numbers: tuple[int, ...]) -> str:
        path = self._paths.get((pattern, numbers))
        if path is None:
            path = self._paths[pattern, numbers] = join_path(pattern, numbers)
        return path

    def _value(
        self, pattern: ValuePattern, sources: Sequence[int], told: Sequence[int], place: Place
    ) -> tuple[Value, tuple[int, ...]]:
        """A value and the storages of its tensors."""
        if isinstance(pattern, Tensor):
            storage = self._storage(pattern, sources, iter(told), place)
            return _tensor(pattern, storage), (storage,)
        if not isinstance(pattern, tuple):
            return pattern, ()
        storages: list[int] = []
        value = self._tuple(pattern, sources, iter(told), place, storages)
        return value, tuple(storages)

    def _tuple(
        self,
        pattern: tuple[ValuePattern, ...],
        sources: Sequence[int],
        told: Iterator[int],
        place: Place,
        storages: list[int],
    ) -> tuple[Value, ...]:
        parts: list[Value] = []
        for part in pattern:
            if isinstance(part, Tensor):
                storages.append(self._storage(part, sources, told, place))
                parts.append(_tensor(part, storages[-1]))
            elif isinstance(part, tuple):
                parts.append(self._tuple(part, sources, told, place, storages))
            else:
                parts.append(part)
        return tuple(parts)

    def _storage(self, tensor: Tensor, sources: Sequence[int], told: Iterator[int], place: Place) -> int:
        if tensor.storage == "new":
            self._fresh += 1
            return self._fresh - 1
        if tensor.storage == "of":
            storages = self._storages[sources[tensor.ref]]
            if tensor.part >= len(storages):
                raise place.error("a tensor is said to alias one that does not exist")
            return storages[tensor.part]
        if tensor.storage == "none":
            return -1
        storage = next(told)
        if storage < 0:
            raise place.error("the number of a storage is negative")
        self._fresh = max(self._fresh, storage + 1)
        return storage


def _filled(pattern: Pattern, refs: Iterator[Ref]) -> Arg:
    return fill(pattern, refs) if isinstance(pattern, Hole) else pattern


def _tensor(tensor: Tensor, storage: int) -> TensorSpec:
    spec = tensor.spec
    return TensorSpec(
        spec.shape, spec.stride, spec.dtype, spec.device, spec.nbytes, storage, spec.storage_nbytes, spec.hint
    )
