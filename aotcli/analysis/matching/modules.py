"""Which module of one model is which of another.

Paths alone would mislead: one more layer in a Sequential shifts the numbers of all that follow. So the modules, in the
order in which the forward leaves them, are aligned by what they compute, and paths decide between alignments that are
about as good. Layers are aligned first (all that lies below one number in a path), then the modules within a layer:
of twelve equal layers of which one is gone, it is one whole layer that stays over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from aotcli.analysis.matching.align import common_between
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.side import Side
from aotcli.ir.joint import NodeKind

_Tokens = tuple[list[int], list[int]]
"""For the units of either side, a number for what they are compared by."""

_PARAMETERS = (NodeKind.PARAM, NodeKind.BUFFER)
_ENOUGH = 0.75
"""How much alike what is aligned by name must be, against what is aligned without, for names to be believed."""


@dataclass(slots=True)
class _Unit:
    """A module, or a layer with all modules inside it. `work` counts ops with shape and dtype, `ops` ops alone."""

    name: str
    types: Counter[str] = field(default_factory=Counter[str])
    ops: Counter[int] = field(default_factory=Counter[int])
    work: Counter[tuple[int, int, int]] = field(default_factory=Counter[tuple[int, int, int]])
    inside: list[_Unit] = field(default_factory=list["_Unit"])


def pair_modules(left: Side, right: Side) -> dict[str, str]:
    """By path in the right graph, the path of the same module in the left one, where there is one."""
    ours, theirs = _modules(left), _modules(right)
    by_layer = [
        pair
        for layer, other in _aligned(_layers(ours), _layers(theirs))
        for pair in _aligned(layer.inside, other.inside, layer.name, other.name)
    ]
    flat = _aligned(ours, theirs)
    pairs = by_layer if _likeness(by_layer) >= _ENOUGH * _likeness(flat) else flat
    paired = {id(unit) for pair in pairs for unit in pair}
    rest = [[unit for unit in units if id(unit) not in paired] for units in (ours, theirs)]
    left_of = {same.name: module.name for module, same in (*pairs, *_aligned(rest[0], rest[1]))}
    # What is left may have moved, or have another class.
    taken = set(left_of.values())
    known = {path for path in left.columns.module if path is not None}
    for path in dict.fromkeys(right.columns.module):
        if path is not None and path not in left_of and path in known and path not in taken:
            left_of[path] = path
    return left_of


def _likeness(pairs: Sequence[tuple[_Unit, _Unit]]) -> int:
    return sum(level(left) == level(right) for left, right in pairs for level in (_by_work, _by_ops, _by_types))


def _modules(side: Side) -> list[_Unit]:
    """Modules that own ops of the forward, or their parameters, in the order in which the forward leaves them. (It may
    enter one early, to cast a bias.) What only the backward reads does not count for the order."""
    found: dict[str, _Unit] = {}
    columns = side.columns
    needed = _needed(side)
    for node in sorted(side.order, key=needed.__getitem__, reverse=True):
        if side.backward[node] or side.nodes[node].kind is not NodeKind.OP:
            continue
        parameters = [source for source in side.inputs[node] if side.nodes[source].kind in _PARAMETERS]
        for each in (*parameters, node):
            path = columns.module[each]
            if path is None:
                continue
            module = found.get(path) or _Unit(path)
            if needed[node]:
                found.pop(path, None)
            found[path] = module
            kind = side.nodes[each].module_type
            if kind is not None and side.nodes[each].module == path:
                module.types[kind] = 1
            module.ops[columns.op[each]] += 1
            module.work[columns.op[each], columns.shape[each], columns.dtype[each]] += 1
    return list(found.values())


def _needed(side: Side) -> bytearray:
    """By node, whether an output of the forward depends on it."""
    needed = bytearray(len(side.nodes))
    stack = list(side.returns.outputs)
    while stack:
        node = stack.pop()
        if not needed[node]:
            needed[node] = 1
            stack += side.inputs[node]
    return needed


def _layers(modules: Sequence[_Unit]) -> list[_Unit]:
    """The modules by path up to the first number, in the order in which the last of each is left."""
    found: dict[str, _Unit] = {}
    for module in modules:
        parts = module.name.split(".")
        end = next((place + 1 for place, part in enumerate(parts) if part.isdigit()), len(parts))
        name = ".".join(parts[:end])
        layer = found.pop(name, None) or _Unit(name)
        found[name] = layer
        layer.inside.append(module)
        layer.types.update(module.types)
        layer.ops.update(module.ops)
        layer.work.update(module.work)
    return list(found.values())


def _aligned(
    left: Sequence[_Unit], right: Sequence[_Unit], left_stem: str = "", right_stem: str = ""
) -> list[tuple[_Unit, _Unit]]:
    """Pairs of units that have something in common: in order, or of one name. Names count from the end of a stem."""
    numbers = Numbers()
    tokens: list[_Tokens] = []
    named: list[_Tokens] = []
    for level in (_by_work, _by_ops, _by_types):
        ours, theirs = ([numbers.of(level(unit)) for unit in units] for units in (left, right))
        tokens.append((ours, theirs))
        my_names = [numbers.of((unit.name[len(left_stem) :], each)) for unit, each in zip(left, ours, strict=True)]
        names = [numbers.of((unit.name[len(right_stem) :], each)) for unit, each in zip(right, theirs, strict=True)]
        named.append((my_names, names))
    in_order = _stepwise([], named)
    moved = _moved(in_order, named)
    by_name = _stepwise(in_order, [_without(level, moved) for level in tokens])
    by_token = _stepwise([], tokens)
    # What has moved counts half: equal modules are many, and names that were dealt out at random would pair them all.
    worth = _worth(by_name, tokens) + _worth(moved, tokens) / 2
    believed = worth >= _ENOUGH * _worth(by_token, tokens)
    return [(left[i], right[j]) for i, j in ([*by_name, *moved] if believed else by_token)]


def _stepwise(pairs: list[tuple[int, int]], levels: Sequence[_Tokens]) -> list[tuple[int, int]]:
    for ours, theirs in levels:
        pairs = common_between(pairs, ours, theirs)
    return pairs


def _moved(pairs: Sequence[tuple[int, int]], named: Sequence[_Tokens]) -> list[tuple[int, int]]:
    """What has one name and something in common, but another place in the order."""
    taken = {i for i, _ in pairs}, {j for _, j in pairs}
    found: list[tuple[int, int]] = []
    for ours, theirs in named:
        places = {number: i for i, number in enumerate(ours) if i not in taken[0]}
        for j, number in enumerate(theirs):
            if j not in taken[1] and number in places:
                found.append((places.pop(number), j))
                taken[0].add(found[-1][0])
                taken[1].add(j)
    return found


def _without(tokens: _Tokens, pairs: Sequence[tuple[int, int]]) -> _Tokens:
    """Tokens that let some units be equal to nothing."""
    gone = {i for i, _ in pairs}, {j for _, j in pairs}
    ours = [-1 if i in gone[0] else token for i, token in enumerate(tokens[0])]
    return ours, [-2 if j in gone[1] else token for j, token in enumerate(tokens[1])]


def _worth(pairs: Sequence[tuple[int, int]], levels: Sequence[_Tokens]) -> int:
    """How many levels the pairs are equal at, together."""
    return sum(ours[i] == theirs[j] for ours, theirs in levels for i, j in pairs)


def _by_work(unit: _Unit) -> Hashable:
    return frozenset(unit.types.items()), frozenset(unit.work.items())


def _by_ops(unit: _Unit) -> Hashable:
    return frozenset(unit.types.items()), frozenset(unit.ops.items())


def _by_types(unit: _Unit) -> Hashable:
    return frozenset(unit.types.items()) if unit.types else unit.name
