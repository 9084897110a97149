"""What two nodes must have in common to be thought the same, from all that is known of them down to the op alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.board import Both
from aotcli.analysis.matching.columns import GETITEM, Numbers
from aotcli.analysis.matching.modules import pair_modules
from aotcli.analysis.matching.side import Side
from aotcli.ir.joint import NodeKind


@dataclass(frozen=True, slots=True)
class Level:
    """`labels` are equal for nodes that may be one; `groups` for nodes whose order among one another counts."""

    labels: Both
    groups: Both
    placed: bool  # whether the module is part of the label


@dataclass(frozen=True, slots=True)
class Levels:
    """`same` are the levels for nodes of one op, strictest first; `changed` is for nodes whose op is another."""

    same: tuple[Level, ...]
    changed: Level


def read_levels(left: Side, right: Side, numbers: Numbers) -> Levels:
    columns = left.columns, right.columns
    ops, forms = (columns[0].op, columns[1].op), (columns[0].form, columns[1].form)
    shapes, dtypes = (columns[0].shape, columns[1].shape), (columns[0].dtype, columns[1].dtype)
    leaves = _numbered(numbers, "leaf", (columns[0].leaf,), (columns[1].leaf,))
    modules = _modules(left, right, numbers)
    phases = _numbered(numbers, "phase", (left.backward,), (right.backward,))

    def join(*parts: Both) -> Both:
        return _numbered(numbers, "joined", [part[0] for part in parts], [part[1] for part in parts])

    groups = join(modules, phases)
    places = join(groups, leaves)
    same = (
        Level(join(ops, forms, shapes, dtypes, places), groups, placed=True),
        Level(join(ops, shapes, places), groups, placed=True),
        Level(join(ops, places), groups, placed=True),
        Level(join(ops, forms, shapes, dtypes, phases), phases, placed=False),
        Level(join(ops, phases), phases, placed=False),
    )
    kinds = [_kind(side, numbers) for side in (left, right)]
    return Levels(same, Level(join((kinds[0], kinds[1]), shapes, dtypes, groups), groups, placed=True))


def _numbered(
    numbers: Numbers, what: str, left: Sequence[Iterable[Hashable]], right: Sequence[Iterable[Hashable]]
) -> Both:
    """A number for each node's tuple of values."""
    known: dict[Hashable, int] = {}
    found: list[list[int]] = []
    for columns in (left, right):
        own: list[int] = []
        for key in zip(*columns, strict=True):
            number = known.get(key)
            if number is None:
                number = known[key] = numbers.of((what, len(columns), key))
            own.append(number)
        found.append(own)
    return found[0], found[1]


def _modules(left: Side, right: Side, numbers: Numbers) -> Both:
    """The right graph's modules go by the name that they have in the left one."""
    left_of = pair_modules(left, right)
    elsewhere = set(left.columns.module)

    def known_as(path: str | None) -> Hashable:
        if path is None or path in left_of:
            return path and left_of[path]
        return ("right", path) if path in elsewhere else path

    names = {path: known_as(path) for path in set(right.columns.module)}
    return _numbered(numbers, "module", (left.columns.module,), ([names[path] for path in right.columns.module],))


def _kind(side: Side, numbers: Numbers) -> list[int]:
    """Ops are all alike, apart from what takes a tuple apart; anything else is what it is."""
    any_op = numbers.of("any op")
    return [
        any_op if node.kind is NodeKind.OP and node.target != GETITEM else op
        for node, op in zip(side.nodes, side.columns.op, strict=True)
    ]
