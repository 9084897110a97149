"""One region of one side of a difference: the fate of every node, and the tensors that are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.op_names import storage_maker
from aotcli.ir.difference import Fate
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Category, Partition, SavedValue
from aotcli.ir.tensor import TensorSpec, tensor_leaves

Storage = int | str
"""A storage number, or the name of a value that has none."""

_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})
_GETITEM = "operator.getitem"
_BACKWARD_KINDS = (NodeKind.TANGENT, NodeKind.BACKWARD_SEED)


def is_free(node: Node) -> bool:
    """Whether a node computes nothing: a view, or one result of several."""
    return node.target == _GETITEM or not _VIEWS.isdisjoint(node.tags)


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One saved storage: the position of the node that made it, and the saved values that are views of it."""

    storage: Storage
    maker: int
    values: tuple[SavedValue, ...]
    positions: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in self.values)

    @property
    def candidates(self) -> tuple[int, ...]:
        """Positions by which the tensor can be found in another graph, the maker's first."""
        return tuple(dict.fromkeys((self.maker, *self.positions)))


@dataclass(frozen=True)
class PlannedRegion:
    """A graph and what a plan does with it."""

    graph: JointGraph
    partition: Partition

    @cached_property
    def tensors(self) -> Mapping[Storage, SavedTensor]:
        """Saved activations by storage, in the order of the forward."""
        index = self.graph.index
        groups: dict[Storage, list[SavedValue]] = {}
        saved = [v for v in self.partition.saved if v.category is Category.ACTIVATION and v.name in index]
        for value in sorted(saved, key=lambda value: index[value.name]):
            if isinstance(value.value, TensorSpec):
                groups.setdefault(value.storage if value.storage >= 0 else value.name, []).append(value)
        return {storage: self._tensor(storage, group) for storage, group in groups.items()}

    def _tensor(self, storage: Storage, values: Sequence[SavedValue]) -> SavedTensor:
        index = self.graph.index
        maker = storage_maker(self.graph, values[0].name)
        return SavedTensor(storage, index[maker.name], tuple(values), tuple(index[value.name] for value in values))

    def storage_of(self, position: int) -> Storage:
        """The storage of a node's value; where it was merged with an equal node, that one's."""
        node = self.graph.nodes[self.representative(position)]
        leaves = tensor_leaves(node.value)
        return leaves[0].storage if leaves and leaves[0].storage >= 0 else node.name

    def representative(self, position: int) -> int:
        """The node that stands for this one after common subexpressions were merged."""
        stands = self.partition.replaced.get(self.graph.nodes[position].name)
        return position if stands is None else self.graph.index.get(stands, position)

    @cached_property
    def fates(self) -> tuple[Fate, ...]:
        """The fate of each node, by position."""
        forward, backward = set(self.partition.forward_nodes), set(self.partition.backward_nodes)
        names: dict[str, Fate] = {}
        storages: dict[int, Fate] = {}
        for value in self.partition.saved:
            fate = Fate.SAVED if value.category is Category.ACTIVATION else Fate.KEPT
            names[value.name] = fate
            if value.storage >= 0:
                storages[value.storage] = fate
        found = tuple(self._fate(node, forward, backward, names, storages) for node in self.graph.nodes)
        if self.partition.replaced:
            return tuple(found[self.representative(position)] for position in range(len(found)))
        return found

    def _fate(
        self,
        node: Node,
        forward: set[str],
        backward: set[str],
        names: Mapping[str, Fate],
        storages: Mapping[int, Fate],
    ) -> Fate:
        saved = names.get(node.name)
        if saved is not None:
            return saved
        if node.kind is not NodeKind.OP:
            return Fate.BACKWARD if node.kind in _BACKWARD_KINDS else Fate.FORWARD
        if node.name in forward:
            if node.name in backward:
                return Fate.RECOMPUTED
            # Of an op that made a saved storage, a view may be what is handed on.
            for leaf in () if is_free(node) else tensor_leaves(node.value):
                if leaf.storage in storages:
                    return storages[leaf.storage]
            return Fate.FORWARD
        return Fate.BACKWARD if node.name in backward else Fate.UNUSED
