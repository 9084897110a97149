"""The frames of a scene: modules that are open, and what a module is called within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from aotcli.analysis.hierarchy import ROOT
from aotcli.analysis.scene import Box, Group, Side
from aotcli.analysis.scene_open import Openness

Layers = tuple[tuple[str, str], ...]
"""The layers that a module is in: for each run of equal layers around it, the path that stands for the run, and its
own."""

LETTERS = {Side.FORWARD: "f", Side.SAVED: "s", Side.BACKWARD: "b"}


class Groups:
    """Open modules by the path that they are drawn under."""

    def __init__(self, openness: Openness, opened: frozenset[str]) -> None:
        self._tree = openness.tree
        self._places = openness.places
        self._opened = opened
        self._paths: dict[str, str] = {}
        self._layers: dict[str, dict[Layers, None]] = {}
        for path, shown in openness.places.items():
            self._paths.setdefault(shown.path, path)
            self._layers.setdefault(shown.path, {})[shown.layers] = None

    def module_type(self, shown: str) -> str | None:
        return self._tree.types.get(self._paths.get(shown, ROOT))

    def around(self, shown: str) -> str | None:
        """The innermost open module that is drawn with a frame, `shown` itself among them."""
        path = self._paths.get(shown, ROOT)
        while path != ROOT:
            place = self._places[path].path
            if place in self._opened and not self._tree.is_container(path):
                return place
            path = self._tree.parent[path]
        return None

    def enclosing(self, shown: str) -> tuple[str | None, str]:
        """The open module around a module, and the module's path within it."""
        path = self._paths.get(shown, ROOT)
        if path == ROOT:
            return None, "(model)"
        group = self.around(self._places[self._tree.parent[path]].path)
        return group, shown[len(group) + 1 :] if group else shown

    def of_boxes(self, boxes: Sequence[Box]) -> tuple[Group, ...]:
        """A group for each side of each open module that has boxes there, outer ones first."""
        counts: dict[str, int] = {}
        found: dict[str, Group] = {}
        for box in boxes:
            if box.group is None:
                continue
            counts[box.group] = counts.get(box.group, 0) + 1
            letter, _, shown = box.group.partition("/")
            while shown and f"{letter}/{shown}" not in found:
                outer, label = self.enclosing(shown)
                group = self._group(letter, shown, outer, label)
                found[group.id] = group
                shown = outer or ""
        depth = {each.id: len(self._tree.ancestors(self._paths[each.path])) for each in found.values()}
        ordered = sorted(found.values(), key=lambda group: depth[group.id])
        return tuple(replace(group, boxes=counts.get(group.id, 0)) for group in ordered)

    def _group(self, letter: str, shown: str, outer: str | None, label: str) -> Group:
        return Group(
            id=f"{letter}/{shown}",
            side=Side.FORWARD if letter == LETTERS[Side.FORWARD] else Side.BACKWARD,
            label=label,
            path=shown,
            parent=f"{letter}/{outer}" if outer else None,
            count=len(self._layers[shown]),
            layers=layers_text(self._layers[shown]),
            module_type=self.module_type(shown),
        )


def carried(source: Layers, target: Layers) -> bool:
    """Whether a value passes from one of some equal layers to another."""
    if source == target:
        return False
    ours = dict(source)
    return any(ours.get(run, path) != path for run, path in target)


def layers_text(layers: Iterable[Layers]) -> str:
    """``h.0 to h.11``: the first and the last of the innermost run; nothing where there is none."""
    found = [each[-1][1] for each in layers if each]
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else ""
