"""Nodes that are the same op in both graphs and differ in what they compute or read: dtype, shape, arguments, wiring.

A change of one node brings others with it, so each node is listed once, under the first of these in which it differs:
device, dtype, shape, arguments, wiring, layout. Wiring counts where all that is read has a partner, and another one:
what reads an op that was rewritten is part of the rewrite. Between equal graphs nothing but traced sizes can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aotcli.analysis.diff_saved import folded_modules
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import node_label
from aotcli.ir.difference import Aspect, ValueChange
from aotcli.ir.joint import Arg, Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import Dim, TensorSpec, tensor_leaves

_EVERYWHERE = frozenset({Aspect.DEVICE, Aspect.DTYPE})
_Sides = tuple[tuple[Dim, ...], tuple[Dim, ...]]


@dataclass(frozen=True, slots=True)
class _Changed:
    aspect: Aspect
    sides: _Sides
    left: Node
    right: Node
    what: str
    everywhere: bool

    @property
    def key(self) -> tuple[object, ...]:
        owner = () if self.everywhere else (self.what, *(_owner(node) for node in (self.left, self.right)))
        return (self.aspect, self.sides, *owner)


def _owner(node: Node) -> str | None:
    return node.module_type or (None if node.module is None else layer_pattern(node.module))


def value_changes(left: JointGraph, right: JointGraph, pairing: Pairing, region: int) -> list[ValueChange]:
    """Rows of changed nodes, folded by repeated layer, those of most nodes first."""
    groups: dict[tuple[object, ...], list[_Changed]] = {}
    pairs = [(there, here) for there, here in enumerate(pairing.right_of) if here >= 0]
    for there, here in sorted(pairs, key=lambda pair: (min(pair), max(pair))):
        found = _change(left, right, there, here, pairing)
        if found is not None:
            groups.setdefault(found.key, []).append(found)
    return sorted((_row(group, region) for group in groups.values()), key=lambda row: -row.count)


def _change(left: JointGraph, right: JointGraph, there: int, here: int, pairing: Pairing) -> _Changed | None:
    node, other = left.nodes[there], right.nodes[here]
    if node.kind is not other.kind or node.kind is NodeKind.OUTPUT:
        return None
    if node.kind is NodeKind.OP and node.target != other.target:
        return None  # a rewrite
    found = _in_value(node, other)
    if found is None and node.kind is NodeKind.OP:
        found = _in_arguments(node, other) or _in_wiring(left, right, there, here, pairing)
    found = found or _in_layout(node, other)
    if found is None:
        return None
    aspect, sides = found
    everywhere = aspect in _EVERYWHERE or (aspect is Aspect.SHAPE and len(sides[0]) == len(sides[1]))
    return _Changed(aspect, sides, node, other, layer_pattern(node_label(right, other)), everywhere)


def _in_value(node: Node, other: Node) -> tuple[Aspect, _Sides] | None:
    leaves = zip(tensor_leaves(node.value), tensor_leaves(other.value), strict=False)
    pairs = [pair for pair in leaves if pair[0] is not pair[1]]
    for aspect, sides in (
        *((Aspect.DEVICE, ((a.device,), (b.device,))) for a, b in pairs),
        *((Aspect.DTYPE, ((a.dtype,), (b.dtype,))) for a, b in pairs),
        *((Aspect.SHAPE, _extents(a, b)) for a, b in pairs),
    ):
        if sides[0] != sides[1]:
            return aspect, sides
    return None


def _extents(left: TensorSpec, right: TensorSpec) -> _Sides:
    """The extents that differ, each change once; the whole shapes where ranks differ; traced sizes of symbols too."""
    if len(left.shape) != len(right.shape):
        return left.shape, right.shape
    changed = dict.fromkeys((a, b) for a, b in zip(left.shape, right.shape, strict=True) if a != b)
    if not changed:
        changed = dict.fromkeys((a, b) for a, b in zip(left.sizes, right.sizes, strict=True) if a != b)
    return tuple(a for a, _ in changed), tuple(b for _, b in changed)


def _in_arguments(node: Node, other: Node) -> tuple[Aspect, _Sides] | None:
    if node.args == other.args and node.kwargs == other.kwargs:
        return None
    mine, theirs = list(_constants(_arguments(node))), list(_constants(_arguments(other)))
    if mine == theirs:
        return None
    if len(mine) == len(theirs):
        changed = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
        return Aspect.ARGUMENTS, (tuple(a for a, _ in changed), tuple(b for _, b in changed))
    return Aspect.ARGUMENTS, (tuple(mine), tuple(theirs))


def _arguments(node: Node) -> Arg:
    return (*node.args, Mapping(node.kwargs)) if node.kwargs else node.args


def _constants(arg: Arg) -> Iterator[str]:
    """What an argument holds, as texts in order, without what it refers to."""
    if isinstance(arg, Ref):
        yield "%"
    elif isinstance(arg, tuple):
        for part in arg:
            yield from _constants(part)
    elif isinstance(arg, Slice):
        for part in (arg.start, arg.stop, arg.step):
            yield from _constants(part)
    elif isinstance(arg, Mapping):
        for key, part in arg.items:
            for text in _constants(part):
                yield f"{key}={text}"
    else:
        yield arg.text if isinstance(arg, Const) else str(arg)


def _in_wiring(
    left: JointGraph, right: JointGraph, there: int, here: int, pairing: Pairing
) -> tuple[Aspect, _Sides] | None:
    expected = [pairing.right_of[source] for source in left.inputs_of[there]]
    found = right.inputs_of[here]
    if list(found) == expected or -1 in expected or any(pairing.left_of[source] < 0 for source in found):
        return None
    return Aspect.WIRING, ((), ())


def _in_layout(node: Node, other: Node) -> tuple[Aspect, _Sides] | None:
    leaves = zip(tensor_leaves(node.value), tensor_leaves(other.value), strict=False)
    for mine, theirs in leaves:
        if mine.stride != theirs.stride and mine.shape == theirs.shape:
            return Aspect.LAYOUT, (mine.stride, theirs.stride)
    return None


def _row(group: list[_Changed], region: int) -> ValueChange:
    first = group[0]
    one = len({(each.what, _owner(each.left), _owner(each.right)) for each in group}) == 1
    return ValueChange(
        aspect=first.aspect,
        left=first.sides[0],
        right=first.sides[1],
        count=len(group),
        left_module=folded_modules([each.left.module for each in group]) if one else "",
        right_module=folded_modules([each.right.module for each in group]) if one else "",
        what=first.what if one else "",
        left_source=first.left.source,
        right_source=first.right.source,
        names=tuple((each.left.name, each.right.name) for each in group),
        region=region,
    )
