"""Which saved tensors differ: those of a left and of a right plan found in each other, and folded by repeated layer."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aotcli.analysis.diff_places import Place, Places
from aotcli.analysis.diff_side import PlannedRegion, SavedTensor, Storage
from aotcli.analysis.layers import layer_pattern, module_names
from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.ir.difference import Cause, Fate, SavedChange, SavedSide
from aotcli.ir.joint import Node
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import Dim, TensorSpec, tensor_leaves

_NOWHERE = 1 << 62


@dataclass(frozen=True, slots=True)
class TensorSide:
    """One side of one tensor. `position` is the node that describes it, the maker of its memory."""

    position: int
    fate: Fate
    nbytes: int
    module: str | None
    module_type: str | None
    what: str
    shape: tuple[Dim, ...]
    dtype: str
    source: str | None
    rule: str
    reason: str
    names: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What sides of one row have in common. Modules of one class count as one: `module_names` names them all."""
        owner = self.module_type or (None if self.module is None else layer_pattern(self.module))
        return owner, self.what, self.shape, self.dtype, self.fate


@dataclass(frozen=True, slots=True)
class TensorPair:
    """One tensor that at least one side saves; a side is None where its graph has no such value."""

    left: TensorSide | None
    right: TensorSide | None

    @property
    def delta_bytes(self) -> int:
        return (0 if self.right is None else self.right.nbytes) - (0 if self.left is None else self.left.nbytes)

    @property
    def place(self) -> tuple[int, int]:
        """An order that does not depend on which side is the left one."""
        places = [_NOWHERE if side is None else side.position for side in (self.left, self.right)]
        return min(places), max(places)


def pair_tensors(
    left: PlannedRegion, right: PlannedRegion, pairing: Pairing, places: Places | None = None
) -> list[TensorPair]:
    """Every saved activation of either side, with what stands for it on the other. `places` say which ops became
    which."""
    right_of, left_of = _partners(left, right, pairing)
    if places is not None:
        mine, other = _alone(left, pairing.right_of, right_of), _alone(right, pairing.left_of, left_of)
        for there, here in _stand_ins(left, right, mine, other, places.places):
            right_of[there], left_of[here] = here, there
    pairs: list[TensorPair] = []
    for storage, tensor in left.tensors.items():
        if storage in right_of:
            other = _saved_side(right, right.tensors[right_of[storage]])
        else:
            other = _other_side(right, tensor, pairing.right_of)
        pairs.append(TensorPair(_saved_side(left, tensor), other))
    for storage, tensor in right.tensors.items():
        if storage not in left_of:
            pairs.append(TensorPair(_other_side(left, tensor, pairing.left_of), _saved_side(right, tensor)))
    return sorted(pairs, key=lambda pair: pair.place)


def _partners(
    left: PlannedRegion, right: PlannedRegion, pairing: Pairing
) -> tuple[dict[Storage, Storage], dict[Storage, Storage]]:
    """Which saved storage of one side is which of the other, in both directions."""
    found: dict[tuple[Storage, Storage], None] = {}
    for storage, tensor in left.tensors.items():
        for position in tensor.candidates:
            other = pairing.right_of[position]
            if other >= 0 and right.storage_of(other) in right.tensors:
                found[storage, right.storage_of(other)] = None
    for storage, tensor in right.tensors.items():
        for position in tensor.candidates:
            other = pairing.left_of[position]
            if other >= 0 and left.storage_of(other) in left.tensors:
                found[left.storage_of(other), storage] = None
    right_of: dict[Storage, Storage] = {}
    left_of: dict[Storage, Storage] = {}
    # Where one storage could be two of the other side, the earlier makers are each other; a rule without sides.
    for there, here in sorted(found, key=lambda pair: _ends(left.tensors[pair[0]].maker, right.tensors[pair[1]].maker)):
        if there not in right_of and here not in left_of:
            right_of[there], left_of[here] = here, there
    return right_of, left_of


def _stand_ins(
    left: PlannedRegion,
    right: PlannedRegion,
    mine: Mapping[int, Sequence[SavedTensor]],
    other: Mapping[int, Sequence[SavedTensor]],
    places: Iterable[Place],
) -> Iterator[tuple[Storage, Storage]]:
    """Tensors that neither graph has a partner for, of one layout in one place: a product with a bias that became one
    without is saved as before."""
    for place in places:
        waiting: dict[tuple[object, ...], list[Storage]] = {}
        for position in place.right:
            for tensor in other.get(position, ()):
                waiting.setdefault(_layout(right, tensor), []).append(tensor.storage)
        for position in place.left:
            for tensor in mine.get(position, ()):
                found = waiting.get(_layout(left, tensor))
                if found:
                    yield tensor.storage, found.pop(0)


def _alone(region: PlannedRegion, partners: Sequence[int], known: Container[Storage]) -> dict[int, list[SavedTensor]]:
    """Saved tensors without a partner, by the position of their makers."""
    found: dict[int, list[SavedTensor]] = {}
    for tensor in region.tensors.values():
        if tensor.storage not in known and all(partners[position] < 0 for position in tensor.candidates):
            found.setdefault(tensor.maker, []).append(tensor)
    return found


def _layout(region: PlannedRegion, tensor: SavedTensor) -> tuple[object, ...]:
    leaves = tensor_leaves(region.graph.nodes[tensor.maker].value)
    return (tensor.nbytes, *((leaf.shape, leaf.dtype) for leaf in leaves))


def _ends(left: int, right: int) -> tuple[int, int]:
    return min(left, right), max(left, right)


def _saved_side(region: PlannedRegion, tensor: SavedTensor) -> TensorSide:
    first = tensor.values[0]
    maker = region.graph.nodes[tensor.maker]
    what, reason = node_label(region.graph, maker), first.reason
    names = tuple(value.name for value in tensor.values)
    owner = maker if maker.module is not None else region.graph[first.name]
    return _side(maker, owner, what, tensor.maker, Fate.SAVED, tensor.nbytes, (reason.rule, reason.text), names)


def _other_side(region: PlannedRegion, tensor: SavedTensor, partners: Sequence[int]) -> TensorSide | None:
    """What became of a tensor on the side that does not save it; None where that graph does not have it."""
    made = partners[tensor.maker]
    views = [partners[each] for each in tensor.positions if partners[each] >= 0]
    # A view of another tensor that is saved there tells nothing of this one.
    others = [each for each in views if region.fates[each] is not Fate.SAVED]
    position = made if made >= 0 else next(iter(others), -1)
    if position < 0:
        return None
    node = region.graph.nodes[position]
    maker = storage_maker(region.graph, node.name)
    fate = region.fates[position]
    return _side(node, node, node_label(region.graph, maker), position, fate, 0, ("", ""), (node.name,))


def _side(
    node: Node,
    owner: Node,
    what: str,
    position: int,
    fate: Fate,
    nbytes: int,
    reason: tuple[str, str],
    names: tuple[str, ...],
) -> TensorSide:
    leaves = tensor_leaves(node.value)
    spec = node.value if isinstance(node.value, TensorSpec) else leaves[0] if leaves else None
    return TensorSide(
        position=position,
        fate=fate,
        nbytes=nbytes,
        module=owner.module,
        module_type=owner.module_type,
        what=what,
        shape=() if spec is None else spec.shape,
        dtype="" if spec is None else spec.dtype,
        source=owner.source,
        rule=reason[0],
        reason=reason[1],
        names=names,
    )


def fold_pairs(
    pairs: Sequence[TensorPair], causes: Sequence[Cause], ties: Container[int], region: int
) -> list[SavedChange]:
    """Rows of pairs that differ alike, in the order of the graph. `ties` are positions in `pairs`."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (pair, cause) in enumerate(zip(pairs, causes, strict=True)):
        key = (cause, number in ties, *(None if side is None else side.key for side in (pair.left, pair.right)))
        groups.setdefault(key, []).append(number)
    rows: list[SavedChange] = []
    for numbers in groups.values():
        first, group = numbers[0], [pairs[number] for number in numbers]
        left = _in_order([pair.left for pair in group])
        right = _in_order([pair.right for pair in group])
        at = left[0].position if left else -1, right[0].position if right else -1
        rows.append(
            SavedChange(len(group), _folded(left), _folded(right), causes[first], at, region, tie=first in ties)
        )
    return rows


def _in_order(sides: Iterable[TensorSide | None]) -> list[TensorSide]:
    return sorted((side for side in sides if side is not None), key=lambda side: side.position)


def _folded(sides: Sequence[TensorSide]) -> SavedSide | None:
    if not sides:
        return None
    first = sides[0]
    sources = list(dict.fromkeys(side.source for side in sides if side.source))
    return SavedSide(
        fate=first.fate,
        nbytes=sum(side.nbytes for side in sides),
        module=folded_modules([side.module for side in sides]),
        what=first.what,
        shape=first.shape,
        dtype=first.dtype,
        source=sources[0] if sources else None,
        sources=len(sources),
        rule=first.rule,
        reason=first.reason,
        names=tuple(name for side in sides for name in side.names),
    )


def folded_modules(paths: Sequence[str | None]) -> str:
    """One name for all of them; the number of a layer stays where it is the same in all."""
    name = module_names(paths)
    numbers = {tuple(part for part in (path or "").split(".") if part.isdigit()) for path in paths}
    if len(numbers) == 1:
        for number in numbers.pop():
            name = name.replace("*", number, 1)
    return name
