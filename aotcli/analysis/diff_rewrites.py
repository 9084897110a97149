"""Ops that became others, folded by repeated layer: twelve layers that changed alike are one row.

What belongs to one change is found in aotcli/analysis/diff_places.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aotcli.analysis.diff_places import Place, Places, PlaceSide, layer_of
from aotcli.analysis.diff_saved import folded_modules
from aotcli.analysis.diff_side import is_free
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import op_label
from aotcli.ir.difference import Rewrite, RewriteSide
from aotcli.ir.joint import Node, NodeKind

_PLACEHOLDERS = {
    NodeKind.PARAM: "parameter",
    NodeKind.BUFFER: "buffer",
    NodeKind.INPUT: "input",
    NodeKind.TANGENT: "tangent",
    NodeKind.SEED: "seed",
    NodeKind.BACKWARD_SEED: "seed",
    NodeKind.ATTR: "constant",
}


def rewrites(places: Places, region: int) -> list[Rewrite]:
    """Rows of places that changed alike."""
    left, right = places.left, places.right
    groups: dict[tuple[object, ...], list[Place]] = {}
    for place in places.places:
        groups.setdefault((_signature(left, place.left), _signature(right, place.right)), []).append(place)
    return [_row(left, right, group, region) for group in groups.values()]


def _label(node: Node) -> str:
    return op_label(node.target) if node.kind is NodeKind.OP else _PLACEHOLDERS.get(node.kind, node.kind.value)


def _labels(side: PlaceSide, positions: Sequence[int], *, backward: bool) -> tuple[tuple[str, int], ...]:
    """Labels of what computes, in graph order, with counts; views only where there is nothing else."""
    chosen = [p for p in positions if side.backward[p] is backward]
    costly = [p for p in chosen if not is_free(side.graph.nodes[p])]
    return tuple(Counter(_label(side.graph.nodes[p]) for p in costly or chosen).items())


def _signature(side: PlaceSide, positions: Sequence[int]) -> tuple[object, ...]:
    """What places of one row have in common: the module and the ops of the forward; those of the backward differ from
    layer to layer where gradients are summed, so they count only where there is nothing else."""
    module = _enclosing(side, positions)
    forward = sorted(_labels(side, positions, backward=False))
    backward = [] if forward else sorted(_labels(side, positions, backward=True))
    return None if module is None else layer_pattern(module), tuple(forward), tuple(backward)


def _row(left: PlaceSide, right: PlaceSide, places: Sequence[Place], region: int) -> Rewrite:
    mine = _side(left, sorted(place.left for place in places))
    other = _side(right, sorted(place.right for place in places))
    at = min(place.left[:1] or (-1,) for place in places)[0], min(place.right[:1] or (-1,) for place in places)[0]
    whole = _is_whole(left, places, 0) if other.empty else _is_whole(right, places, 1) if mine.empty else False
    return Rewrite(len(places), mine, other, at, whole, region)


def _is_whole(side: PlaceSide, places: Sequence[Place], number: int) -> bool:
    """Whether each place is all of one layer."""
    for place in places:
        positions = (place.left, place.right)[number]
        ops = [p for p in positions if side.graph.nodes[p].kind is NodeKind.OP]
        layers = Counter(layer for p in ops if (layer := side.own_layers[p]))
        if len(layers) != 1 or side.layer_sizes[next(iter(layers))] != layers.total():
            return False
    return True


def _side(side: PlaceSide, places: Sequence[tuple[int, ...]]) -> RewriteSide:
    nodes = side.graph.nodes
    first = places[0]
    everything = [position for place in places for position in place]
    return RewriteSide(
        module=folded_modules([_enclosing(side, place) for place in places]) if everything else "",
        forward=_labels(side, first, backward=False),
        backward=_labels(side, first, backward=True),
        names=tuple(nodes[position].name for position in everything),
        flops=sum(nodes[position].flops or 0 for position in everything),
        source=next((nodes[position].source for position in first if nodes[position].source), None),
        free=bool(everything) and all(is_free(nodes[position]) for position in everything),
    )


def _enclosing(side: PlaceSide, positions: Sequence[int]) -> str | None:
    """The module that encloses a place; what is in no layer counts only where nothing is in one."""
    paths = [path for position in positions if (path := side.graph.nodes[position].module) is not None]
    layered = [path for path in paths if layer_of(path)]
    return _common(layered or paths) if paths else None


def _common(paths: Sequence[str]) -> str:
    """The longest path that all of them start with."""
    common = paths[0].split(".")
    for path in paths[1:]:
        parts = path.split(".")
        length = 0
        while length < min(len(common), len(parts)) and common[length] == parts[length]:
            length += 1
        common = common[:length]
    return ".".join(common)
