"""Boxes, links and groups of a scene, added up from the ops behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aotcli.analysis.hierarchy import ROOT
from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.analysis.scene import Box, BoxKind, Group, Link, LinkKind, Scene, SceneTotals, Side
from aotcli.analysis.scene_labels import label_units, telling_label
from aotcli.analysis.scene_open import Openness, Place
from aotcli.analysis.scene_step import SavedFlow, Step, Unit
from aotcli.ir.joint import Node, NodeKind
from aotcli.ir.partition import Category, SavedValue
from aotcli.ir.tensor import TensorSpec, tensor_leaves

Layers = tuple[tuple[str, str], ...]
_CRUMB_SHARE = 0.005  # values with less than this share of all saved bytes need no box of their own
_LETTERS = {Side.FORWARD: "f", Side.SAVED: "s", Side.BACKWARD: "b"}


@dataclass
class _Pile:
    """Units of one box, and the layers that they are in."""

    place: Place
    units: list[int] = field(default_factory=list[int])
    layers: dict[Layers, None] = field(default_factory=dict[Layers, None])


@dataclass
class _Flow:
    """What passes along a link: bytes of each value."""

    kind: LinkKind
    values: dict[object, int] = field(default_factory=dict[object, int])


class SceneBuilder:
    """Turns units with their places into a scene."""

    def __init__(
        self,
        step: Step,
        openness: Openness,
        opened: frozenset[str],
        places: Sequence[Place],
        show: frozenset[str],
        *,
        loss: bool,
    ) -> None:
        self._step = step
        self._openness = openness
        self._opened = opened
        self._show = show
        self._loss = loss
        self._paths = {shown.path: path for path, shown in reversed(openness.places.items())}
        self._piles: dict[Place, _Pile] = {}
        self._layers = [openness.places[unit.module].layers for unit in step.units]
        for position, place in enumerate(places):
            pile = self._piles.setdefault(place, _Pile(place))
            pile.units.append(position)
            pile.layers[self._layers[position]] = None
        self._ids = self._box_ids()
        self._box_of = [self._ids[place] for place in places]
        self._flows: dict[tuple[str, str], _Flow] = {}

    def scene(self, totals: SceneTotals, strategy: str) -> Scene:
        names = self._line_names()
        boxes = {self._ids[place]: self._box(pile, names) for place, pile in self._piles.items()}
        self._link_units()
        saved = self._saved_boxes()
        before, after = self._placeholders(), self._results()
        forward = [box for box in boxes.values() if box.side is Side.FORWARD]
        backward = [box for box in boxes.values() if box.side is Side.BACKWARD]
        tangents = [box for box in before if box.side is Side.BACKWARD]
        inputs = [box for box in before if box.side is Side.FORWARD]
        results = [box for box in after if box.side is Side.FORWARD]
        gradients = [box for box in after if box.side is Side.BACKWARD]
        ordered = (*inputs, *forward, *results, *saved, *tangents, *backward, *gradients)
        links = tuple(
            Link(source, target, flow.kind, sum(flow.values.values()), len(flow.values))
            for (source, target), flow in self._flows.items()
        )
        return Scene(self._step.graph.name, ordered, links, self._groups(ordered), totals, strategy)

    # Boxes.

    def _box_ids(self) -> dict[Place, str]:
        """``f/h.*.fc`` for a module, ``b:mul_3`` for an op (the first of the box); r for what is recomputed."""
        ids: dict[Place, str] = {}
        for place, pile in self._piles.items():
            letter = "r" if place.recomputed else _LETTERS[place.side]
            if place.kind is BoxKind.MODULE:
                ids[place] = f"{letter}/{place.path}" + (f"@{place.part[1]}" if place.part else "")
            else:
                ids[place] = f"{letter}:{self._step.units[pile.units[0]].node.name}"
        return ids

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
            group, label = self._enclosing(place.path)
            label += f" ({place.part[1]})" if place.part else ""
            module_type = self._openness.tree.types.get(self._paths.get(place.path, ""))
        else:
            counterpart = names.get((place.path, ours[0].node.source or ""), "")
            group, label = self._group_id(place.path), label_units(ours, counterpart)
            module_type = ours[0].node.module_type
        flops = [unit.node.flops for unit in units]
        return Box(
            id=self._ids[place],
            kind=place.kind,
            side=place.side,
            label=label,
            group=None if group is None else f"{_LETTERS[place.side]}/{group}",
            recomputed=place.recomputed,
            count=len(pile.layers),
            layers=_layers_text(pile.layers),
            members=tuple(unit.node.name for unit in ours),
            targets=tuple(unit.node.target for unit in ours),
            ops=len(units),
            module=place.path,
            module_type=module_type,
            source=next((unit.node.source for unit in ours if unit.node.source), None),
            value=_main_value(ours),
            nbytes=sum(leaf.nbytes for unit in units for leaf in tensor_leaves(unit.node.value)),
            flops=None if None in flops else sum(each or 0 for each in flops),
            all_members=tuple(unit.node.name for unit in units),
        )

    def _group_id(self, shown: str) -> str | None:
        """The innermost open module that is drawn with a frame, `shown` itself among them."""
        path = self._paths.get(shown, ROOT)
        while path != ROOT:
            place = self._openness.places[path].path
            if place in self._opened and not self._openness.tree.is_container(path):
                return place
            path = self._openness.tree.parent[path]
        return None

    def _enclosing(self, shown: str) -> tuple[str | None, str]:
        """The group around a module, and the module's path within it."""
        path = self._paths.get(shown, ROOT)
        if path == ROOT:
            return None, "(model)"
        group = self._group_id(self._openness.places[self._openness.tree.parent[path]].path)
        return group, shown[len(group) + 1 :] if group else shown

    # Links.

    def _link_units(self) -> None:
        sides = [unit.side for unit in self._step.units]
        for source, target in self._step.flows:
            if _carried(self._layers[source], self._layers[target]):
                continue
            if sides[source] is not sides[target]:
                kind = LinkKind.READ
            else:
                kind = LinkKind.FLOW if sides[source] is Side.FORWARD else LinkKind.GRADIENT
            nbytes = sum(leaf.nbytes for leaf in tensor_leaves(self._step.units[source].node.value))
            self._link(self._box_of[source], self._box_of[target], kind, source, nbytes)

    def _link(self, source: str, target: str, kind: LinkKind, value: object, nbytes: int) -> None:
        if source != target:
            self._flows.setdefault((source, target), _Flow(kind)).values[value] = nbytes

    def _saved_boxes(self) -> list[Box]:
        """One box for all values that one box makes and the same boxes read."""
        together: dict[tuple[str, tuple[str, ...]], list[SavedFlow]] = {}
        for flow in self._step.saved:
            maker = "" if flow.maker is None else self._box_of[flow.maker]
            readers = tuple(dict.fromkeys(self._box_of[reader] for reader in flow.readers))
            together.setdefault((maker, tuple(sorted(readers))), []).append(flow)
        boxes: list[Box] = []
        for maker, flows in _without_crumbs(together):
            box = self._saved_box(flows)
            boxes.append(box)
            for flow in flows:
                nbytes = _cost(flow.value)
                if maker:
                    self._link(maker, box.id, LinkKind.SAVED, flow.value.name, nbytes)
                for reader in flow.readers:
                    self._link(box.id, self._box_of[reader], LinkKind.SAVED, flow.value.name, nbytes)
        return boxes

    def _saved_box(self, flows: Sequence[SavedFlow]) -> Box:
        values = [flow.value for flow in flows]
        layers: dict[Layers, None] = {}
        for flow in flows:
            layers[self._openness.places.get(flow.value.module or ROOT, self._openness.places[ROOT]).layers] = None
        first = next(iter(layers))
        ours = [
            value
            for value in values
            if self._openness.places.get(value.module or ROOT, self._openness.places[ROOT]).layers == first
        ]
        largest = max(ours, key=lambda value: value.nbytes)
        shown = self._openness.places.get(largest.module or ROOT, self._openness.places[ROOT]).path
        return Box(
            id=f"s:{values[0].name}",
            kind=BoxKind.SAVED,
            side=Side.SAVED,
            label=node_label(self._step.graph, storage_maker(self._step.graph, largest.name)),
            count=len(layers),
            layers=_layers_text(layers),
            members=tuple(value.name for value in ours),
            targets=tuple(value.op for value in ours),
            ops=len(values),
            module=shown,
            module_type=largest.module_type,
            source=largest.source,
            value=largest.value if isinstance(largest.value, TensorSpec) else None,
            nbytes=sum(_cost(value) for value in values),
            reasons=tuple(dict.fromkeys(value.reason.text for value in ours)),
            all_members=tuple(value.name for value in values),
        )

    # Placeholders and results.

    def _placeholders(self) -> list[Box]:
        """Tangents always; parameters, buffers and inputs where asked for. Those of one module that the same boxes
        read are one box."""
        readers: dict[str, dict[str, None]] = {}
        for name, unit in self._step.reads:
            readers.setdefault(name, {})[self._box_of[unit]] = None
        together: dict[tuple[object, ...], list[Node]] = {}
        for name, boxes in readers.items():
            node = self._step.graph[name]
            kind = self._placeholder_kind(node)
            if kind is not None:
                owner = self._openness.places.get(node.module or ROOT)
                key = (kind, owner.path if owner and kind is BoxKind.PARAM else name, tuple(boxes))
                together.setdefault(("t", *boxes) if kind is BoxKind.TANGENT else key, []).append(node)
        return [self._placeholder(nodes, list(readers[nodes[0].name])) for nodes in together.values()]

    def _placeholder_kind(self, node: Node) -> BoxKind | None:
        if node.kind in (NodeKind.TANGENT, NodeKind.BACKWARD_SEED):
            return BoxKind.TANGENT if node.kind is NodeKind.TANGENT else None
        if node.kind in (NodeKind.PARAM, NodeKind.BUFFER):
            return BoxKind.PARAM if "params" in self._show else None
        return BoxKind.INPUT if "inputs" in self._show and node.kind is NodeKind.INPUT else None

    def _placeholder(self, nodes: Sequence[Node], readers: Iterable[str]) -> Box:
        kind = self._placeholder_kind(nodes[0])
        assert kind is not None
        tangent = kind is BoxKind.TANGENT
        layers = {self._openness.places[n.module].layers: None for n in nodes if n.module in self._openness.places}
        names = list(dict.fromkeys((node.origin or node.name).rpartition(".")[2] for node in nodes))
        if tangent:
            names = ["gradient of the loss" if self._loss else "gradients of the outputs"]
        sizes = [sum(leaf.nbytes for leaf in tensor_leaves(node.value)) for node in nodes]
        box = Box(
            id=f"p:{nodes[0].name}",
            kind=kind,
            side=Side.BACKWARD if tangent else Side.FORWARD,
            label=", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else ""),
            count=max(1, len(layers)),
            layers=_layers_text(layers) if layers else "",
            members=tuple(node.name for node in nodes),
            ops=len(nodes),
            module=nodes[0].module,
            value=max((leaf for n in nodes for leaf in tensor_leaves(n.value)), key=lambda v: v.nbytes, default=None),
            nbytes=sum(sizes),
            all_members=tuple(node.name for node in nodes),
        )
        for reader in readers:
            for node, size in zip(nodes, sizes, strict=True):
                self._link(box.id, reader, LinkKind.READ, node.name, size)
        return box

    def _results(self) -> list[Box]:
        """What the forward returns; gradients where parameters are shown. Results of one box are one."""
        together: dict[tuple[str, bool], list[Unit]] = {}
        for unit, forward in self._step.results:
            if forward or "params" in self._show:
                together.setdefault((self._box_of[unit], forward), []).append(self._step.units[unit])
        boxes: list[Box] = []
        for (maker, forward), units in together.items():
            side = Side.FORWARD if forward else Side.BACKWARD
            name = ("loss" if self._loss else "output") if forward else "gradient"
            box = Box(
                id=f"o:{units[0].node.name}",
                kind=BoxKind.RESULT,
                side=side,
                label=name if len(units) == 1 else f"{len(units)} {name}{'es' if name == 'loss' else 's'}",
                members=tuple(unit.node.name for unit in units),
                ops=len(units),
                value=_main_value(units),
                nbytes=sum(leaf.nbytes for unit in units for leaf in tensor_leaves(unit.node.value)),
                all_members=tuple(unit.node.name for unit in units),
            )
            boxes.append(box)
            for unit in units:
                kind = LinkKind.FLOW if forward else LinkKind.GRADIENT
                size = sum(leaf.nbytes for leaf in tensor_leaves(unit.node.value))
                self._link(maker, box.id, kind, unit.node.name, size)
        return boxes

    # Groups.

    def _groups(self, boxes: Sequence[Box]) -> tuple[Group, ...]:
        """Open modules that have boxes, outer ones first."""
        counts: dict[str, int] = {}
        found: dict[str, Group] = {}
        for box in boxes:
            if box.group is None:
                continue
            counts[box.group] = counts.get(box.group, 0) + 1
            letter, _, shown = box.group.partition("/")
            while shown and f"{letter}/{shown}" not in found:
                path = self._paths[shown]
                outer, label = self._enclosing(shown)
                layers = {self._openness.places[p].layers: None for p in self._openness.places if self._same(p, shown)}
                found[f"{letter}/{shown}"] = Group(
                    id=f"{letter}/{shown}",
                    side=Side.FORWARD if letter == "f" else Side.BACKWARD,
                    label=label,
                    path=shown,
                    parent=f"{letter}/{outer}" if outer else None,
                    count=len(layers),
                    layers=_layers_text(layers),
                    module_type=self._openness.tree.types.get(path),
                )
                shown = outer or ""
        depth = {id_: len(self._openness.tree.ancestors(self._paths[g.path])) for id_, g in found.items()}
        ordered = sorted(found.values(), key=lambda group: depth[group.id])
        return tuple(replace(group, boxes=counts.get(group.id, 0)) for group in ordered)

    def _same(self, path: str, shown: str) -> bool:
        return self._openness.places[path].path == shown


def _without_crumbs(
    together: Mapping[tuple[str, tuple[str, ...]], list[SavedFlow]],
) -> list[tuple[str, list[SavedFlow]]]:
    """Small values go with larger ones of the same maker, if possible with one that the same boxes read."""
    sizes = {key: sum(_cost(flow.value) for flow in flows) for key, flows in together.items()}
    least = _CRUMB_SHARE * sum(sizes.values())
    found: dict[str, list[tuple[set[str], list[SavedFlow]]]] = {}
    for key in sorted(together, key=lambda key: -sizes[key]):  # a stable sort
        maker, readers = key
        others = found.setdefault(maker, [])
        if others and maker and sizes[key] < least:
            wanted = set(readers)
            holder = next((each for each in others if wanted <= each[0]), others[0])
            holder[0].update(wanted)
            holder[1].extend(together[key])
        else:
            others.append((set(readers), list(together[key])))
    order = {flow.value.name: i for i, flows in enumerate(together.values()) for flow in flows}
    merged = [(maker, flows) for maker, others in found.items() for _, flows in others]
    return sorted(merged, key=lambda each: order[each[1][0].value.name])


def _carried(source: Layers, target: Layers) -> bool:
    """Whether a value passes from one of some equal layers to another."""
    if source == target:
        return False
    ours = dict(source)
    return any(ours.get(run, path) != path for run, path in target)


def _cost(value: SavedValue) -> int:
    return value.nbytes if value.category is Category.ACTIVATION else 0


def _main_value(units: Sequence[Unit]) -> TensorSpec | None:
    """The largest tensor that the units make; the last of equal ones."""
    best: TensorSpec | None = None
    for unit in units:
        for leaf in tensor_leaves(unit.node.value):
            if best is None or leaf.nbytes >= best.nbytes:
                best = leaf
    return best


def _layers_text(layers: Iterable[Layers]) -> str:
    """``h.0 to h.11``: the first and the last of the innermost run; nothing where there is none."""
    found = [each[-1][1] for each in layers if each]
    if len(found) < 2:
        return ""
    return f"{found[0]} to {found[-1]}"
