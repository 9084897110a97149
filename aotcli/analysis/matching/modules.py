"""Which module of one model is which of another.

Paths alone would mislead: one more layer in a Sequential shifts the numbers of all that follow. So the modules, in the
order in which the forward first enters them, are aligned by what they compute; where paths say the same, paths decide
between equal alignments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from aotcli.analysis.matching.align import common_between
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.side import Side
from aotcli.ir.joint import NodeKind

_ENOUGH = 0.75
"""Of the modules that can be aligned at all, the share that must be aligned by their paths for paths to be believed."""


@dataclass(slots=True)
class _Module:
    """What a module does itself, without the modules inside it."""

    path: str
    type: str | None = None
    ops: Counter[int] = field(default_factory=Counter[int])
    full: Counter[tuple[int, int, int]] = field(default_factory=Counter[tuple[int, int, int]])


def pair_modules(left: Side, right: Side) -> dict[str, str]:
    """By path in the right graph, the path of the same module in the left one, where there is one."""
    ours, theirs = _modules(left), _modules(right)
    pairs: list[tuple[int, int]] = []
    for level in (_by_work, _by_shapeless_work, _by_type):
        numbers = Numbers()
        tokens = [[numbers.of(level(module)) for module in modules] for modules in (ours, theirs)]
        paths = [
            [numbers.of((module.path, token)) for module, token in zip(modules, own, strict=True)]
            for modules, own in zip((ours, theirs), tokens, strict=True)
        ]
        pairs = _filled(pairs, (tokens[0], tokens[1]), (paths[0], paths[1]))
    left_of = {theirs[j].path: ours[i].path for i, j in pairs}
    taken = set(left_of.values())
    # What is left may have moved, or have another class.
    known = {path for path in left.columns.module if path is not None}
    for path in dict.fromkeys(right.columns.module):
        if path is not None and path not in left_of and path in known and path not in taken:
            left_of[path] = path
    return left_of


def _by_work(module: _Module) -> Hashable:
    return module.type, frozenset(module.full.items())


def _by_shapeless_work(module: _Module) -> Hashable:
    return module.type, frozenset(module.ops.items())


def _by_type(module: _Module) -> Hashable:
    return module.type or module.path


def _modules(side: Side) -> list[_Module]:
    """Modules that own ops of the forward, or parameters, in the order in which the forward comes to either."""
    found: dict[str, _Module] = {}
    columns = side.columns
    for node in side.order:
        if side.backward[node] or side.nodes[node].kind is not NodeKind.OP:
            continue
        parameters = [source for source in side.inputs[node] if columns.leaf[source] is not None]
        for each in (*parameters, node):
            path = columns.module[each]
            if path is None:
                continue
            module = found.get(path)
            if module is None:
                module = found[path] = _Module(path, side.nodes[each].module_type)
            module.ops[columns.op[each]] += 1
            module.full[columns.op[each], columns.shape[each], columns.dtype[each]] += 1
    return list(found.values())


def _filled(
    anchors: Sequence[tuple[int, int]], plain: tuple[list[int], list[int]], named: tuple[list[int], list[int]]
) -> list[tuple[int, int]]:
    """`anchors`, and between them what is equal: by token and path first, unless tokens alone explain much more."""
    by_name = common_between(common_between(anchors, *named), *plain)
    by_token = common_between(anchors, *plain)
    return by_name if len(by_name) >= _ENOUGH * len(by_token) else by_token
