"""Saved values folded by repeated layer: twelve equal blocks make one row.

A row is keyed by module path with every number replaced by ``*``, op, shape, dtype and reason. Values that share one
storage are one tensor. Rows that differ only in which module of one class they belong to (the two layer norms of a
block and the last one) become one row that names them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, SavedValue
from aotcli.ir.tensor import Dim, TensorSpec

UNKNOWN_MODULE = "?"
MODEL_ITSELF = "(model)"


@dataclass(frozen=True, slots=True)
class SavedRow:
    """`count` tensors (storages) of one kind, `nbytes` together. `values` are the saved values behind them, `module` a
    path with ``*`` for layer numbers, `source` the line of the first, `sources` how many different lines there are."""

    nbytes: int
    count: int
    module: str
    what: str
    shape: tuple[Dim, ...]
    dtype: str
    rule: str
    reason: str
    source: str | None
    sources: int
    values: tuple[SavedValue, ...]


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One storage, and the saved values that are views of it; `what`, `spec` and owner are those of its maker."""

    path: str | None
    module_type: str | None
    what: str
    spec: TensorSpec
    values: tuple[SavedValue, ...]

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in self.values)


def layer_pattern(path: str) -> str:
    """``h.*.fc`` of ``h.3.fc``."""
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def module_label(path: str | None) -> str:
    """A module path for a reader: ``?`` where unknown, ``(model)`` for the model itself."""
    if path is None:
        return UNKNOWN_MODULE
    return path or MODEL_ITSELF


def fold_saved(
    graph: JointGraph, saved: Sequence[SavedValue], categories: Iterable[Category] = (Category.ACTIVATION,)
) -> tuple[SavedRow, ...]:
    """Rows of the saved tensors in `categories`, largest first (then in the forward's order)."""
    wanted = frozenset(categories)
    groups: dict[tuple[object, ...], list[SavedTensor]] = {}
    values = sorted((v for v in saved if v.category in wanted), key=lambda value: graph.index[value.name])
    for tensor in group_storages(graph, values):
        pattern = None if tensor.path is None else layer_pattern(tensor.path)
        # Modules of one class are told apart only by `module_names`; without a class, by their path.
        owner = tensor.module_type or pattern
        key = (owner, tensor.what, tensor.spec.shape, tensor.spec.dtype, tensor.values[0].reason)
        groups.setdefault(key, []).append(tensor)
    seen: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        if node.module is not None:
            seen.setdefault(layer_pattern(node.module), position)
    rows = [_row(sorted(tensors, key=lambda tensor: _place(tensor, seen))) for tensors in groups.values()]
    return tuple(sorted(rows, key=lambda row: -row.nbytes))


def _place(tensor: SavedTensor, seen: Mapping[str, int]) -> int:
    """Where in the graph the tensor's module first occurs, whatever its layer: the order in which a reader knows it."""
    return -1 if tensor.path is None else seen.get(layer_pattern(tensor.path), -1)


def flat_rows(
    graph: JointGraph, saved: Sequence[SavedValue], categories: Iterable[Category] = (Category.ACTIVATION,)
) -> tuple[SavedRow, ...]:
    """One row for each saved tensor value, in the forward's order. A second view of a storage has 0 bytes."""
    wanted = frozenset(categories)
    rows: list[SavedRow] = []
    for value in sorted(saved, key=lambda value: graph.index[value.name]):
        if value.category in wanted and isinstance(value.value, TensorSpec):
            node = graph[value.name]
            tensor = SavedTensor(value.module, value.module_type, node_label(graph, node), value.value, (value,))
            rows.append(_row([tensor], keep_numbers=True))
    return tuple(rows)


def group_storages(graph: JointGraph, values: Sequence[SavedValue]) -> list[SavedTensor]:
    """Saved tensors by storage, in the order of `values`; what is no tensor is left out."""
    by_storage: dict[int, list[SavedValue]] = {}
    for position, value in enumerate(values):
        if isinstance(value.value, TensorSpec):
            # Tensors without a storage number (sparse) are each their own.
            key = value.storage if value.storage >= 0 else -2 - position
            by_storage.setdefault(key, []).append(value)
    return [_tensor(graph, group) for group in by_storage.values()]


def _tensor(graph: JointGraph, group: list[SavedValue]) -> SavedTensor:
    first = group[0]
    assert isinstance(first.value, TensorSpec)
    maker = storage_maker(graph, first.name)
    what = node_label(graph, maker)
    if len(group) > 1:
        what = f"{what}, {len(group)} views"
    return SavedTensor(
        path=first.module if maker.module is None else maker.module,
        module_type=first.module_type if maker.module is None else maker.module_type,
        what=what,
        spec=maker.value if isinstance(maker.value, TensorSpec) else first.value,
        values=tuple(group),
    )


def _row(tensors: list[SavedTensor], keep_numbers: bool = False) -> SavedRow:
    first = tensors[0]
    sources = list(dict.fromkeys(value.source for tensor in tensors for value in tensor.values if value.source))
    paths = [tensor.path for tensor in tensors]
    return SavedRow(
        nbytes=sum(tensor.nbytes for tensor in tensors),
        count=len(tensors),
        module=module_label(paths[0]) if keep_numbers else module_names(paths),
        what=first.what,
        shape=first.spec.shape,
        dtype=first.spec.dtype,
        rule=first.values[0].reason.rule,
        reason=first.values[0].reason.text,
        source=sources[0] if sources else None,
        sources=len(sources),
        values=tuple(value for tensor in tensors for value in tensor.values),
    )


def module_names(paths: Sequence[str | None]) -> str:
    """One name for all: ``h.3.fc`` alone, ``h.*.fc`` of a layer, ``h.*.ln1,ln2`` of siblings, ``ln1 ln2 f``."""
    distinct = list(dict.fromkeys(module_label(path) for path in paths))
    if len(distinct) == 1:
        return distinct[0]
    patterns = list(dict.fromkeys(layer_pattern(path) for path in distinct))
    if len(patterns) == 1:
        return patterns[0]
    parents = {pattern.rpartition(".")[0] for pattern in patterns}
    names = dict.fromkeys(_last_name(pattern) for pattern in patterns)
    if len(parents) == 1 and (parent := parents.pop()):
        return f"{parent}.{','.join(names)}"
    return " ".join(names)


def _last_name(pattern: str) -> str:
    """The last part of a path that says something: ``ln1`` of ``h.*.ln1``, ``net.*`` of ``net.*``."""
    parts = pattern.split(".")
    start = len(parts) - 1
    while start and parts[start] == "*":
        start -= 1
    return ".".join(parts[start:])
