"""Nodes that are the same op in both graphs and differ in what they compute or read: dtype, shape, arguments, wiring.

A change of one node brings others with it, so each node is listed once, under the first of these in which it differs:
device, dtype, shape, arguments, wiring, layout, policy. Wiring counts where all that is read has a partner, and another
one: what reads an op that was rewritten is part of the rewrite. Between equal graphs only traced sizes and policies
differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aotcli.analysis.diff_fates import node_side, owner_of
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import node_label
from aotcli.ir.difference import Aspect, ValueChange
from aotcli.ir.joint import Arg, Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import Dim, TensorSpec, tensor_leaves

_EVERYWHERE = frozenset({Aspect.DEVICE, Aspect.DTYPE})
_READ = "%"  # a reference, among the texts of an argument
_Sides = tuple[tuple[Dim, ...], tuple[Dim, ...]]


@dataclass(frozen=True, slots=True)
class _Changed:
    aspect: Aspect
    sides: _Sides
    left: int
    right: int
    kind: tuple[object, ...]  # which op, and whose


def value_changes(left: JointGraph, right: JointGraph, pairing: Pairing, region: int) -> list[ValueChange]:
    """Rows of changed nodes, folded by repeated layer."""
    groups: dict[tuple[object, ...], list[_Changed]] = {}
    for there, here in enumerate(pairing.right_of):
        if here < 0:
            continue
        found = _change(left, right, there, here, pairing)
        if found is not None:
            aspect, sides = found
            node, other = left.nodes[there], right.nodes[here]
            kind = _label(left, node), _label(right, other), owner_of(node), owner_of(other)
            everywhere = aspect in _EVERYWHERE or (aspect is Aspect.SHAPE and len(sides[0]) == len(sides[1]))
            key = (aspect, sides) if everywhere else (aspect, sides, kind)
            groups.setdefault(key, []).append(_Changed(aspect, sides, there, here, kind))
    return [_row(left, right, group, region) for group in groups.values()]


def _label(graph: JointGraph, node: Node) -> str:
    return layer_pattern(node_label(graph, node))


def _change(
    left: JointGraph, right: JointGraph, there: int, here: int, pairing: Pairing
) -> tuple[Aspect, _Sides] | None:
    node, other = left.nodes[there], right.nodes[here]
    if node.kind is not other.kind or node.kind is NodeKind.OUTPUT:
        return None
    if node.kind is NodeKind.OP and node.target != other.target:
        return None  # a rewrite
    found = _in_value(node, other)
    if found is None and node.kind is NodeKind.OP:
        found = _in_arguments(node, other) or _in_wiring(left, right, there, here, pairing)
    return found or _in_layout(node, other) or _in_policy(node, other)


def _in_value(node: Node, other: Node) -> tuple[Aspect, _Sides] | None:
    mine, theirs = node.value, other.value
    if isinstance(mine, TensorSpec) and isinstance(theirs, TensorSpec):
        pairs = [(mine, theirs)]
    else:
        pairs = list(zip(tensor_leaves(mine), tensor_leaves(theirs), strict=False))
    for a, b in pairs:
        if a.device != b.device:
            return Aspect.DEVICE, ((a.device,), (b.device,))
    for a, b in pairs:
        if a.dtype != b.dtype:
            return Aspect.DTYPE, ((a.dtype,), (b.dtype,))
    for a, b in pairs:
        if a.shape != b.shape or a.hint != b.hint:
            return Aspect.SHAPE, _extents(a, b)
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
    if [text.endswith(_READ) for text in mine] != [text.endswith(_READ) for text in theirs]:
        return Aspect.WIRING, ((), ())  # a tensor stands where a constant did
    if len(mine) == len(theirs):
        changed = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
        return Aspect.ARGUMENTS, (tuple(a for a, _ in changed), tuple(b for _, b in changed))
    return Aspect.ARGUMENTS, (tuple(mine), tuple(theirs))


def _arguments(node: Node) -> Arg:
    return (*node.args, Mapping(node.kwargs)) if node.kwargs else node.args


def _constants(arg: Arg) -> Iterator[str]:
    """What an argument holds, as texts in order, without what it refers to."""
    if isinstance(arg, Ref):
        yield _READ
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


def _in_policy(node: Node, other: Node) -> tuple[Aspect, _Sides] | None:
    if node.checkpoint == other.checkpoint:
        return None
    return Aspect.POLICY, ((node.checkpoint or "none",), (other.checkpoint or "none",))


def _row(left: JointGraph, right: JointGraph, group: list[_Changed], region: int) -> ValueChange:
    first = group[0]
    everywhere = len({each.kind for each in group}) > 1
    mine, other = sorted(each.left for each in group), sorted(each.right for each in group)
    labels = [
        "" if everywhere else _label(graph, graph.nodes[position])
        for graph, position in ((left, mine[0]), (right, other[0]))
    ]
    return ValueChange(
        count=len(group),
        aspect=first.aspect,
        left_value=first.sides[0],
        right_value=first.sides[1],
        left=node_side(left, mine, labels[0], everywhere=everywhere),
        right=node_side(right, other, labels[1], everywhere=everywhere),
        at=(mine[0], other[0]),
        region=region,
    )
