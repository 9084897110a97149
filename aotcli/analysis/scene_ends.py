"""Boxes at the ends of a step: placeholders that are read, and what the step returns."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.hierarchy import ROOT
from aotcli.analysis.scene import Box, BoxKind, LinkKind, Side
from aotcli.analysis.scene_groups import layers_text
from aotcli.analysis.scene_links import LinkPile, value_nbytes
from aotcli.analysis.scene_open import Openness
from aotcli.analysis.scene_step import Step, Unit
from aotcli.ir.joint import Node, NodeKind
from aotcli.ir.tensor import TensorSpec, tensor_leaves

_NAMES_SHOWN = 3


def placeholder_boxes(
    step: Step, openness: Openness, box_of: Sequence[str], links: LinkPile, show: frozenset[str], *, loss: bool
) -> list[Box]:
    """Tangents always; parameters with buffers, and inputs, where `show` names them. Parameters that the same boxes
    read are one box."""
    readers: dict[str, dict[str, None]] = {}
    for name, unit in step.reads:
        readers.setdefault(name, {})[box_of[unit]] = None
    together: dict[tuple[object, ...], list[Node]] = {}
    for name, boxes in readers.items():
        node = step.graph[name]
        kind = _kind(node, show)
        if kind is None:
            continue
        key = name if kind is BoxKind.INPUT else ""
        together.setdefault((kind, key, *sorted(boxes)), []).append(node)
    found: list[Box] = []
    for (kind, *_), nodes in together.items():
        assert isinstance(kind, BoxKind)
        box = _placeholder(openness, kind, nodes, loss=loss)
        found.append(box)
        for node in nodes:
            for reader in readers[node.name]:
                links.add(box.id, reader, LinkKind.READ, node.name, value_nbytes(node.value))
    return found


def _kind(node: Node, show: frozenset[str]) -> BoxKind | None:
    """The kind of box that a placeholder has; None where it is not shown."""
    if node.kind is NodeKind.TANGENT:
        return BoxKind.TANGENT
    if node.kind in (NodeKind.PARAM, NodeKind.BUFFER):
        return BoxKind.PARAM if "params" in show else None
    return BoxKind.INPUT if "inputs" in show and node.kind is NodeKind.INPUT else None


def _placeholder(openness: Openness, kind: BoxKind, nodes: Sequence[Node], *, loss: bool) -> Box:
    owners = [node.module or ROOT for node in nodes]
    places = [openness.places[owner] for owner in owners if owner in openness.places]
    layers = dict.fromkeys(place.layers for place in places)
    names = list(dict.fromkeys((node.origin or node.name).rpartition(".")[2] for node in nodes))
    if len(nodes) == 1:  # with its module's name: many parameters are called weight
        names = [".".join((nodes[0].origin or nodes[0].name).split(".")[-2:])]
    if kind is BoxKind.TANGENT:
        names = ["d loss" if loss else "d outputs"]
    elif kind is BoxKind.INPUT:
        names = [node.origin or node.name for node in nodes]
    rest = len(names) - _NAMES_SHOWN
    leaves = [leaf for node in nodes for leaf in tensor_leaves(node.value)]
    return Box(
        id=f"p:{nodes[0].name}",
        kind=kind,
        side=Side.BACKWARD if kind is BoxKind.TANGENT else Side.FORWARD,
        label=", ".join(names[:_NAMES_SHOWN]) + (f" +{rest}" if rest > 0 else ""),
        count=max(1, len(layers)),
        layers=layers_text(layers),
        members=tuple(node.name for node in nodes),
        all_members=tuple(node.name for node in nodes),
        ops=len(nodes),
        module=places[0].path if places else None,
        value=max(leaves, key=lambda leaf: leaf.nbytes, default=None),
        nbytes=sum(leaf.nbytes for leaf in leaves),
    )


def result_boxes(step: Step, box_of: Sequence[str], links: LinkPile, show: frozenset[str], *, loss: bool) -> list[Box]:
    """What the forward returns; gradients where parameters are shown. Results of one box are one."""
    together: dict[tuple[str, bool], list[Unit]] = {}
    for unit, forward in step.results:
        if forward or "params" in show:
            together.setdefault((box_of[unit], forward), []).append(step.units[unit])
    found: list[Box] = []
    for (maker, forward), units in together.items():
        box = _result(units, forward=forward, loss=loss)
        found.append(box)
        for unit in units:
            kind = LinkKind.FLOW if forward else LinkKind.GRADIENT
            links.add(maker, box.id, kind, unit.node.name, value_nbytes(unit.node.value))
    return found


def _result(units: Sequence[Unit], *, forward: bool, loss: bool) -> Box:
    name, many = ("loss", "losses") if loss else ("output", "outputs")
    if not forward:
        name, many = "gradient", "gradients"
    return Box(
        id=f"o:{units[0].node.name}",
        kind=BoxKind.RESULT,
        side=Side.FORWARD if forward else Side.BACKWARD,
        label=name if len(units) == 1 else f"{len(units)} {many}",
        members=tuple(unit.node.name for unit in units),
        all_members=tuple(unit.node.name for unit in units),
        ops=len(units),
        value=main_value(units),
        nbytes=sum(value_nbytes(unit.node.value) for unit in units),
    )


def main_value(units: Sequence[Unit]) -> TensorSpec | None:
    """The largest tensor that the units make; the last of equal ones."""
    best: TensorSpec | None = None
    for unit in units:
        for leaf in tensor_leaves(unit.node.value):
            if best is None or leaf.nbytes >= best.nbytes:
                best = leaf
    return best
