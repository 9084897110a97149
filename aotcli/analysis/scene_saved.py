"""Boxes of saved values: one for all that one box makes and the same boxes read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotcli.analysis.hierarchy import ROOT
from aotcli.analysis.op_names import node_label, storage_maker
from aotcli.analysis.scene import Box, BoxKind, Change, LinkKind, Side
from aotcli.analysis.scene_groups import Layers, layers_text
from aotcli.analysis.scene_links import LinkPile
from aotcli.analysis.scene_open import Openness
from aotcli.analysis.scene_step import SavedFlow, Step
from aotcli.ir.partition import Category, SavedValue
from aotcli.ir.tensor import TensorSpec

_CRUMB_SHARE = 0.005  # values with less than this share of all saved bytes need no box of their own

_Key = tuple[str, Change, tuple[str, ...]]


def saved_boxes(step: Step, openness: Openness, box_of: Sequence[str], links: LinkPile) -> list[Box]:
    """The boxes, in the order of the saved values; their links are added to `links`. `box_of` gives units' boxes."""
    together: dict[_Key, list[SavedFlow]] = {}
    for flow in step.saved:
        maker = "" if flow.maker is None else box_of[flow.maker]
        readers = tuple(sorted({box_of[reader] for reader in flow.readers}))
        together.setdefault((maker, flow.change, readers), []).append(flow)
    boxes: list[Box] = []
    for maker, flows in _without_crumbs(together):
        box = _saved_box(step, openness, flows)
        boxes.append(box)
        for flow in flows:
            name, nbytes = flow.value.name, cost(flow.value)
            if maker:
                links.add(maker, box.id, LinkKind.SAVED, name, nbytes, flow.change)
            for reader in flow.readers:
                links.add(box.id, box_of[reader], LinkKind.SAVED, name, nbytes, flow.change)
    return boxes


def cost(value: SavedValue) -> int:
    """What saving a value costs: nothing for what lives on anyway (parameters, inputs, results)."""
    return value.nbytes if value.category is Category.ACTIVATION else 0


def _without_crumbs(together: Mapping[_Key, list[SavedFlow]]) -> list[tuple[str, list[SavedFlow]]]:
    """Makers with flows that share a box. Small values go with larger ones of the same maker, with the one
    that most of the same boxes read."""
    sizes = {key: sum(cost(flow.value) for flow in flows) for key, flows in together.items()}
    least = _CRUMB_SHARE * sum(sizes.values())
    found: dict[tuple[str, Change], list[tuple[frozenset[str], list[SavedFlow]]]] = {}
    crumbs: dict[tuple[str, Change], tuple[set[str], list[SavedFlow]]] = {}
    for (maker, change, readers), flows in together.items():
        if maker and sizes[maker, change, readers] < least:
            small = crumbs.setdefault((maker, change), (set(), []))
            small[0].update(readers)
            small[1].extend(flows)
        else:
            found.setdefault((maker, change), []).append((frozenset(readers), list(flows)))
    for key, (wanted, flows) in crumbs.items():
        others = found.setdefault(key, [])
        readers = frozenset(wanted)
        if others:
            max(others, key=lambda each: len(each[0].intersection(readers)))[1].extend(flows)
        else:
            others.append((readers, flows))
    order = {id(flow): position for position, flow in enumerate(step for flows in together.values() for step in flows)}
    merged = [(maker, flows) for (maker, _), others in found.items() for _, flows in others]
    return sorted(merged, key=lambda each: order[id(each[1][0])])


def _saved_box(step: Step, openness: Openness, flows: Sequence[SavedFlow]) -> Box:
    layers_of = [_layers(openness, flow.value) for flow in flows]
    layers = dict.fromkeys(layers_of)
    first = next(iter(layers))
    ours = [flow.value for flow, each in zip(flows, layers_of, strict=True) if each == first]
    largest = max(ours, key=lambda value: value.nbytes)
    graph = flows[0].graph or step.graph
    letter = "s" if flows[0].graph is None else "t"
    return Box(
        id=f"{letter}:{flows[0].value.name}",
        kind=BoxKind.SAVED,
        side=Side.SAVED,
        label=node_label(graph, storage_maker(graph, largest.name)),
        count=len(layers),
        layers=layers_text(layers),
        members=tuple(value.name for value in ours),
        all_members=tuple(flow.value.name for flow in flows),
        targets=tuple(value.op for value in ours),
        ops=len(flows),
        module=openness.places.get(largest.module or ROOT, openness.places[ROOT]).path,
        module_type=largest.module_type,
        source=largest.source,
        value=largest.value if isinstance(largest.value, TensorSpec) else None,
        nbytes=sum(cost(flow.value) for flow in flows),
        reasons=tuple(dict.fromkeys(value.reason.text for value in ours)),
        change=flows[0].change,
        kept_as="" if any(cost(flow.value) for flow in flows) else largest.category.value,
    )


def _layers(openness: Openness, value: SavedValue) -> Layers:
    return openness.places.get(value.module or ROOT, openness.places[ROOT]).layers
