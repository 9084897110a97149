"""Boxes of a scene, added up from the ops behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aotcli.analysis.scene import Box, BoxKind, Change, LinkKind, Scene, SceneTotals, Side
from aotcli.analysis.scene_ends import main_value, placeholder_boxes, result_boxes
from aotcli.analysis.scene_groups import LETTERS, Groups, Layers, carried, layers_text
from aotcli.analysis.scene_labels import label_units, telling_label
from aotcli.analysis.scene_links import LinkPile, value_nbytes
from aotcli.analysis.scene_open import Openness, Place
from aotcli.analysis.scene_saved import saved_boxes
from aotcli.analysis.scene_step import ENDS, Step

_RECOMPUTED = "r"
_GONE = {"f": "g", "b": "c", "r": "q"}  # letters of what is only in the other graph, so that ids stay apart


@dataclass
class _Pile:
    """Units of one box, and the layers that they are in."""

    place: Place
    units: list[int] = field(default_factory=list[int])
    layers: dict[Layers, None] = field(default_factory=dict[Layers, None])


class SceneBuilder:
    """Turns units with their places into a scene."""

    def __init__(self, step: Step, openness: Openness, opened: frozenset[str], places: Sequence[Place]) -> None:
        self._step = step
        self._openness = openness
        self._groups = Groups(openness, opened)
        self._layers = [openness.places[unit.module].layers for unit in step.units]
        self._piles: dict[Place, _Pile] = {}
        for position, place in enumerate(places):
            pile = self._piles.setdefault(place, _Pile(place))
            pile.units.append(position)
            pile.layers[self._layers[position]] = None
        self._ids = {place: self._box_id(pile) for place, pile in self._piles.items()}
        self._box_of = [self._ids[place] for place in places]

    def scene(self, totals: SceneTotals, strategy: str, show: frozenset[str], *, loss: bool) -> Scene:
        """The scene. `show` and `loss` are those of the scene's options."""
        links = LinkPile()
        self._link_units(links)
        names = self._line_names()
        boxes = [self._box(pile, names) for pile in self._piles.values()]
        saved = saved_boxes(self._step, self._openness, self._box_of, links)
        before = placeholder_boxes(self._step, self._openness, self._box_of, links, show, loss=loss)
        after = result_boxes(self._step, self._box_of, links, show, loss=loss)
        ordered = (
            *(box for part in (before, boxes, after) for box in part if box.side is Side.FORWARD),
            *saved,
            *(box for part in (before, boxes, after) for box in part if box.side is Side.BACKWARD),
        )
        groups = self._groups.of_boxes(ordered)
        return Scene(self._step.graph.name, ordered, links.links(), groups, totals, strategy)

    def _box_id(self, pile: _Pile) -> str:
        """``f/h.*.fc`` for a module, ``b:mul_3`` for an op (the first of the box); r for what is recomputed."""
        place = pile.place
        letter = _RECOMPUTED if place.recomputed else LETTERS[place.side]
        letter = _GONE[letter] if place.gone else letter
        if place.kind is BoxKind.MODULE:
            return f"{letter}/{place.path}" + (f"@{place.part[1]}" if place.part else "")
        return f"{letter}:{self._step.units[pile.units[0]].node.name}"

    def _line_names(self) -> dict[tuple[str, str], str]:
        """What the forward ops of a module's line are called, for those that the backward has of the same line."""
        names: dict[tuple[str, str], str] = {}
        for place, pile in self._piles.items():
            first = self._step.units[pile.units[0]].node
            if place.kind is BoxKind.OP and place.side is Side.FORWARD and first.source and first.flops == 0:
                name = telling_label([self._step.units[each] for each in pile.units])
                if name:
                    names.setdefault((place.path, first.source), name)
        return names

    def _box(self, pile: _Pile, names: Mapping[tuple[str, str], str]) -> Box:
        place = pile.place
        first = next(iter(pile.layers))
        units = [self._step.units[position] for position in pile.units]
        ours = [self._step.units[position] for position in pile.units if self._layers[position] == first]
        if place.kind is BoxKind.MODULE:
            group, label = self._groups.enclosing(place.path)
            label += f" ({place.part[1]})" if place.part else ""
            module_type = self._groups.module_type(place.path)
        else:
            counterpart = names.get((place.path, ours[0].node.source or ""), "")
            group, label = self._groups.around(place.path), label_units(ours, counterpart)
            module_type = ours[0].node.module_type
        flops = [unit.node.flops for unit in units]
        changes = {unit.change for unit in units}
        was = dict.fromkeys(unit.was for unit in units if unit.was)
        return Box(
            id=self._ids[place],
            kind=place.kind,
            side=place.side,
            label=label,
            group=None if group is None else f"{LETTERS[place.side]}/{group}",
            recomputed=place.recomputed,
            count=len(pile.layers),
            layers=layers_text(pile.layers),
            members=tuple(unit.node.name for unit in ours),
            all_members=tuple(unit.node.name for unit in units),
            targets=tuple(unit.node.target for unit in ours),
            ops=len(units),
            module=place.path,
            module_type=module_type,
            source=next((unit.node.source for unit in ours if unit.node.source), None),
            value=main_value(ours),
            nbytes=sum(value_nbytes(unit.node.value) for unit in units),
            flops=None if None in flops else sum(each or 0 for each in flops),
            change=_together(changes),
            was=", ".join(list(was)[:3]),
        )

    def _link_units(self, links: LinkPile) -> None:
        units = self._step.units
        for source, target in self._step.flows:
            if carried(self._layers[source], self._layers[target]):
                continue
            maker, reader = units[source], units[target]
            if maker.side is not reader.side:
                kind = LinkKind.READ
            else:
                kind = LinkKind.FLOW if maker.side is Side.FORWARD else LinkKind.GRADIENT
            change = next((each.change for each in (maker, reader) if each.change in ENDS), Change.SAME)
            size = value_nbytes(maker.node.value)
            links.add(self._box_of[source], self._box_of[target], kind, source, size, change)


def _together(changes: set[Change]) -> Change:
    """The change of a box from those of its ops."""
    if len(changes) == 1:
        return next(iter(changes))
    flips = changes & {Change.NOW_SAVED, Change.NOW_RECOMPUTED}
    if changes - {Change.SAME} == flips and len(flips) == 1:
        return next(iter(flips))
    return Change.CHANGED
