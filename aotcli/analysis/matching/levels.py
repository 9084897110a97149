"""What two nodes must have in common to be thought the same, from all that is known of them down to the op alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.board import Both, Scope
from aotcli.analysis.matching.columns import GETITEM, Numbers
from aotcli.analysis.matching.modules import pair_modules
from aotcli.analysis.matching.side import Side
from aotcli.ir.joint import NodeKind

_NO_LABEL = -1
_ANY_OP = -1


@dataclass(frozen=True, slots=True)
class Level:
    """Nodes may be one where all `parts` are equal. `groups` are equal for nodes whose order among one another counts;
    `placed` says whether the module is among the parts."""

    parts: tuple[Both, ...]
    groups: Both
    placed: bool = True

    def labels(self, scope: Scope) -> Both:
        """One number in place of all parts, for the nodes of `scope`."""
        known: dict[Hashable, int] = {}
        left = _labels([part[0] for part in self.parts], scope.left, known)
        right = _labels([part[1] for part in self.parts], scope.right, known)
        return left, right


@dataclass(frozen=True, slots=True)
class Levels:
    """`same` are the levels for nodes of one op, strictest first; `changed` is for nodes whose op is another."""

    same: tuple[Level, ...]
    changed: Level


def read_levels(left: Side, right: Side) -> Levels:
    ours, theirs = left.columns, right.columns
    op, form = (ours.op, theirs.op), (ours.form, theirs.form)
    shape, dtype = (ours.shape, theirs.shape), (ours.dtype, theirs.dtype)
    numbers = Numbers()
    leaf = [numbers.of(each) for each in ours.leaf], [numbers.of(each) for each in theirs.leaf]
    phase = left.backward, right.backward
    module = _modules(left, right)
    groups = _joined(module[0], phase[0]), _joined(module[1], phase[1])
    same = (
        Level((op, form, shape, dtype, module, phase, leaf), groups),
        Level((op, shape, module, phase, leaf), groups),
        Level((op, module, phase, leaf), groups),
        Level((op, form, shape, dtype, phase), phase, placed=False),
        Level((op, phase), phase, placed=False),
    )
    return Levels(same, Level(((_kind(left), _kind(right)), shape, dtype, module, phase), groups))


def _labels(parts: Sequence[Sequence[int]], nodes: Sequence[int], known: dict[Hashable, int]) -> list[int]:
    labels = [_NO_LABEL] * len(parts[0])
    keys = zip(*[map(part.__getitem__, nodes) for part in parts], strict=True)
    for node, key in zip(nodes, keys, strict=True):
        labels[node] = known.setdefault(key, len(known))
    return labels


def _joined(module: Sequence[int], phase: Sequence[int]) -> list[int]:
    return [2 * number + half for number, half in zip(module, phase, strict=True)]


def _modules(left: Side, right: Side) -> Both:
    """The right graph's modules go by the name that they have in the left one."""
    left_of = pair_modules(left, right)
    elsewhere = set(left.columns.module)
    numbers = Numbers()
    known: dict[str | None, int] = {}
    for path in set(right.columns.module):
        if path is None or path in left_of:
            known[path] = numbers.of(path and left_of[path])
        else:
            known[path] = numbers.of(("right", path) if path in elsewhere else path)
    return [numbers.of(path) for path in left.columns.module], [known[path] for path in right.columns.module]


def _kind(side: Side) -> list[int]:
    """Ops are all alike, apart from what takes a tuple apart; anything else is what it is."""
    return [
        _ANY_OP if node.kind is NodeKind.OP and node.target != GETITEM else op
        for node, op in zip(side.nodes, side.columns.op, strict=True)
    ]
