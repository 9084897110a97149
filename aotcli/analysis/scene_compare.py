"""Two steps as one picture: the first, with what only the other has, and what each decided otherwise.

Nodes are paired by `match_graphs`. The first step's boxes stand as they are; ops that only the other has are put where
they ran in it, linked to the partners of what they read there. A value that only one of them saves is a flip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aotcli.analysis.matching import match_graphs
from aotcli.analysis.scene import Change, Scene, Side
from aotcli.analysis.scene_build import SceneOptions, scene_of_step
from aotcli.analysis.scene_step import SavedFlow, Step, Unit, step_of
from aotcli.ir.joint import JointGraph, Node
from aotcli.ir.pairing import Pairing
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import tensor_leaves

_ROOM = 150  # percent of the boxes that a picture of one step may have
Planned = tuple[JointGraph, Partition | None]


def build_merged_scene(mine: Planned, theirs: Planned, options: SceneOptions | None = None) -> Scene:
    """The scene of `mine` with its differences from `theirs`. Raises what `build_scene` raises."""
    options = options or SceneOptions()
    step = merge_steps(mine, theirs, views="views" in options.show)
    # What is gone takes room, too.
    return scene_of_step(step, mine[1], replace(options, limit=options.limit * _ROOM // 100))


def merge_steps(mine: Planned, theirs: Planned, *, views: bool = False) -> Step:
    """One step of both: each unit and each saved value says how it differs."""
    pairing = match_graphs(mine[0], theirs[0])
    first, second = step_of(*mine, views=views), step_of(*theirs, views=views)
    return _Merger(first, second, pairing, mine, theirs).merged()


@dataclass(frozen=True, slots=True)
class _Gone:
    """A unit that only the other step has; it belongs behind the first step's unit number `after`."""

    unit: Unit
    after: int


class _Merger:
    def __init__(self, first: Step, second: Step, pairing: Pairing, mine: Planned, theirs: Planned) -> None:
        self._first, self._second = first, second
        self._mine, self._theirs = mine[0], theirs[0]
        self._pairing = pairing
        self._our_saved = _saved_names(mine[1])
        self._their_saved = _saved_names(theirs[1])
        # Recomputed, or computed in the backward alone.
        self._in_our_backward = frozenset(mine[1].backward_nodes) if mine[1] is not None else frozenset[str]()
        self._position = {(unit.node.name, unit.side): i for i, unit in enumerate(first.units)}
        self._gone: list[_Gone] = []
        # For each unit of the other step: a unit of this one (its number), one that is gone (-2 - its number), or none.
        self._counterpart: list[int | None] = []

    def merged(self) -> Step:
        self._pair_units()
        number, units = self._ordered()
        flows = [(number[a], number[b]) for a, b in self._first.flows]
        for a, b in self._second.flows:
            source, reader = self._counterpart[a], self._counterpart[b]
            if source is not None and reader is not None and min(source, reader) < 0:
                flows.append((number[source], number[reader]))
        return replace(
            self._first,
            units=tuple(units),
            flows=tuple(flows),
            saved=tuple(self._saved(number)),
            reads=tuple((name, number[unit]) for name, unit in self._first.reads),
            results=tuple((number[unit], forward) for unit, forward in self._first.results),
        )

    def _pair_units(self) -> None:
        latest = {Side.FORWARD: -1, Side.BACKWARD: -1}
        sources: dict[int, list[int]] = {}
        for source, reader in self._second.flows:
            sources.setdefault(reader, []).append(source)
        for position, unit in enumerate(self._second.units):
            partner = self._partner_of_theirs(unit.node)
            found = None if partner is None else self._position.get((partner.name, unit.side))
            # A node that is there, but seen through, in the other half, or not recomputed, is no loss.
            if partner is None:
                behind = [each for s in sources.get(position, ()) if (each := self._counterpart[s]) is not None]
                places = [each if each >= 0 else self._gone[-2 - each].after for each in behind]
                found = -2 - len(self._gone)
                self._gone.append(_Gone(replace(unit, change=Change.REMOVED), max(places, default=latest[unit.side])))
            if found is not None:
                latest[unit.side] = found if found >= 0 else self._gone[-2 - found].after
            self._counterpart.append(found)

    def _ordered(self) -> tuple[dict[int, int], list[Unit]]:
        """All units, each half together: what is gone stands behind what it read."""
        changed = [self._changed(unit) for unit in self._first.units]
        keyed = [((unit.side is Side.BACKWARD, i, 0), i, unit) for i, unit in enumerate(changed)]
        keyed += [
            ((each.unit.side is Side.BACKWARD, each.after, i + 1), -2 - i, each.unit)
            for i, each in enumerate(self._gone)
        ]
        keyed.sort(key=lambda each: each[0])
        return {old: new for new, (_, old, _) in enumerate(keyed)}, [unit for _, _, unit in keyed]

    def _changed(self, unit: Unit) -> Unit:
        """A unit of the first step with what the other has in its place."""
        partner = self._partner_of_ours(unit.node)
        if partner is None:
            return replace(unit, change=Change.ADDED)
        if _layout(partner) != _layout(unit.node):
            return replace(unit, change=Change.CHANGED, was=_layout_text(partner))
        if unit.recomputed and partner.name in self._their_saved and unit.node.name not in self._our_saved:
            return replace(unit, change=Change.NOW_RECOMPUTED, was="saved")
        return unit

    def _partner_of_ours(self, node: Node) -> Node | None:
        partner = self._pairing.right_of[self._mine.index[node.name]]
        return self._theirs.nodes[partner] if partner >= 0 else None

    def _partner_of_theirs(self, node: Node) -> Node | None:
        partner = self._pairing.left_of[self._theirs.index[node.name]]
        return self._mine.nodes[partner] if partner >= 0 else None

    def _saved(self, number: Mapping[int, int]) -> list[SavedFlow]:
        """Saved values of both: those of one maker and size are the same value."""
        theirs = {self._trait(flow) for flow in self._second.saved}
        found: list[SavedFlow] = []
        ours: set[tuple[int, int]] = set()
        for flow in self._first.saved:
            maker = -1 if flow.maker is None else flow.maker
            ours.add((maker, flow.value.nbytes))
            partner = self._partner_of_ours(self._mine[flow.value.name])
            if (maker, flow.value.nbytes) in theirs or (partner is not None and partner.name in self._their_saved):
                change = Change.SAME
            else:
                change = Change.ADDED if partner is None else Change.NOW_SAVED
            readers = tuple(number[reader] for reader in flow.readers)
            found.append(SavedFlow(flow.value, None if maker < 0 else number[maker], readers, change))
        for flow in self._second.saved:
            partner = self._partner_of_theirs(self._theirs[flow.value.name])
            if self._trait(flow) in ours or (partner is not None and partner.name in self._our_saved):
                continue
            maker = None if flow.maker is None else self._counterpart[flow.maker]
            names = {partner.name} if partner is not None else set[str]()
            names |= {self._first.units[maker].node.name} if maker is not None and maker >= 0 else set[str]()
            change = Change.NOW_RECOMPUTED if names & self._in_our_backward else Change.REMOVED
            readers = [each for reader in flow.readers if (each := self._counterpart[reader]) is not None]
            found.append(
                SavedFlow(
                    flow.value,
                    None if maker is None else number[maker],
                    tuple(number[each] for each in readers),
                    change,
                    self._theirs,
                )
            )
        return found

    def _trait(self, flow: SavedFlow) -> tuple[int, int]:
        """The first step's unit that makes what the other saves, and its bytes; nothing equals what has no such."""
        maker = None if flow.maker is None else self._counterpart[flow.maker]
        return (-3 if maker is None or maker < 0 else maker), flow.value.nbytes


def _saved_names(partition: Partition | None) -> frozenset[str]:
    return frozenset(value.name for value in partition.saved) if partition is not None else frozenset()


def _layout(node: Node) -> tuple[object, ...]:
    return node.target, *((leaf.shape, leaf.dtype) for leaf in tensor_leaves(node.value))


def _layout_text(node: Node) -> str:
    shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in tensor_leaves(node.value)[:1]]
    return " ".join([node.target, *shapes])
