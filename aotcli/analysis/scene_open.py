"""Which modules a picture shows from inside, and which box each op is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from aotcli.analysis.hierarchy import ROOT, ModuleTree, Shown
from aotcli.analysis.scene import BoxKind, Change, Side
from aotcli.analysis.scene_step import Step, Unit
from aotcli.errors import InputError


@dataclass(frozen=True)
class Openness:
    """What decides whether a module is open. `places` are the paths that modules are drawn under; `expand` and
    `collapse` are the modules that patterns took."""

    tree: ModuleTree
    places: Mapping[str, Shown]
    expand: frozenset[str]
    collapse: frozenset[str]


@dataclass(frozen=True, slots=True)
class Place:
    """The box of an op: its kind, the shown path of its module, and what tells it from other boxes of that module: for
    an op the stretch that it is in, for a module which call of it, where it is called more than once."""

    kind: BoxKind
    side: Side
    recomputed: bool
    path: str
    part: tuple[str, int] | None = None
    gone: bool = False  # only in the other graph, where two are drawn as one


def matches(tree: ModuleTree, patterns: Sequence[str], option: str) -> frozenset[str]:
    """Modules whose path matches one of the patterns: ``*`` stands for any characters, dots included.

    Raises InputError for a pattern that no module matches.
    """
    found: set[str] = set()
    for pattern in patterns:
        taken = {path for path in tree.children if path != ROOT and fnmatchcase(path, pattern)}
        if pattern in ("", "(model)"):
            taken = {ROOT}
        if not taken:
            raise no_match(f"{option} {pattern}: no module has such a path", pattern, list(tree.children))
        found |= taken
    return frozenset(found)


def no_match(what: str, wanted: str, known: Sequence[str]) -> InputError:
    """The error that names what is near."""
    names = [name for name in dict.fromkeys(known) if name]
    near = get_close_matches(wanted, names, n=3, cutoff=0.5) or [name for name in names if wanted in name][:3]
    if not names:
        return InputError(what, why="the ops of this graph belong to no module", fix="leave the pattern out")
    if near:
        return InputError(what, why=f"near are {', '.join(near)}", fix=f"did you mean {near[0]}?")
    shown = ", ".join(names[:6]) + ("" if len(names) <= 6 else ", ...")
    return InputError(what, why=f"there are {shown}", fix=f"write one of them, such as {names[0]}")


def open_modules(openness: Openness, depth: int, *, leaves: bool) -> frozenset[str]:
    """Shown paths of the modules that are open: those above level `depth` (those without submodules only if `leaves`),
    those that `expand` took and all around them; none that `collapse` took, and none inside those."""
    tree = openness.tree
    opened: set[str] = {ROOT}
    wanted = {above for path in openness.expand for above in tree.ancestors(path)}
    for path, children in tree.children.items():
        if path == ROOT:
            if ROOT in openness.collapse:
                return frozenset()
            continue
        inside = openness.places[tree.parent[path]].path in opened
        deep_enough = tree.level[path] < depth and (bool(children) or leaves)
        if inside and path not in openness.collapse and (tree.is_container(path) or deep_enough or path in wanted):
            opened.add(openness.places[path].path)
    return frozenset(opened)


def assign_boxes(
    step: Step, openness: Openness, opened: frozenset[str], *, single: bool = False, coarse: bool = False
) -> list[Place]:
    """The place of each unit. With `single`, each op of an open module has a box of its own; otherwise ops that follow
    each other share one where they come from the same line (`coarse`: from the same module), compute-intensive ops
    apart."""
    covers = {path: _cover(openness, path, opened) for path in openness.tree.children}
    shared = _Shared(coarse=coarse)
    places: list[Place] = []
    for unit in step.units:
        path = unit.module
        closed = covers[path]
        if closed is not None:
            places.append(Place(BoxKind.MODULE, unit.side, unit.recomputed, closed, gone=_is_gone(unit)))
            shared.leave(unit)
            continue
        alone = single or path in openness.expand
        part = shared.part(unit, path, alone=alone)
        shown = openness.places[path].path
        places.append(Place(BoxKind.OP, unit.side, unit.recomputed, shown, part, _is_gone(unit)))
    return places


def _is_gone(unit: Unit) -> bool:
    return unit.change is Change.REMOVED


def _cover(openness: Openness, path: str, opened: frozenset[str]) -> str | None:
    """The shown path of the outermost closed module around a module; None where all are open."""
    for each in openness.tree.ancestors(path):
        shown = openness.places[each].path
        if shown not in opened:
            return shown
    return None


class _Shared:
    """Numbers the stretches of ops that share a box. Stretches of equal layers get equal numbers."""

    def __init__(self, *, coarse: bool) -> None:
        self._coarse = coarse
        self._last: dict[tuple[Side, bool, Change], tuple[object, ...] | None] = {}
        self._part: dict[tuple[Side, bool, Change], tuple[str, int]] = {}
        self._counts: dict[tuple[object, ...], int] = {}

    def leave(self, unit: Unit) -> None:
        """An op in a box of its own kind ends the stretch."""
        self._last[unit.side, unit.recomputed, unit.change] = None

    def part(self, unit: Unit, path: str, *, alone: bool) -> tuple[str, int]:
        lane = (unit.side, unit.recomputed, unit.change)
        apart = alone or unit.node.flops != 0
        line = "" if self._coarse else unit.node.source or ""
        stretch = None if apart else (path, line)
        if stretch is not None and self._last.get(lane) == stretch:
            return self._part[lane]
        name = unit.node.target if apart else line
        number = self._counts.get((*lane, path, name), 0)
        self._counts[*lane, path, name] = number + 1
        self._last[lane], self._part[lane] = stretch, (name, number)
        return self._part[lane]
