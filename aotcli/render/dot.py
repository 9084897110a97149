"""A scene as DOT, for Graphviz: clusters by module, and the hairpin form, so that `dot` can lay it out.

Edges of the backward are written from reader to maker with ``dir=back``: Graphviz ranks them as written and draws the
arrow the other way, so that the backward climbs beside the forward. Without that, a graph of some hundred ops takes
`dot` minutes, and its saved values span the whole height.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pydot

from aotcli.analysis.scene import Box, BoxKind, Link, LinkKind, Scene, Side
from aotcli.render.layout import box_texts, usual_dtype
from aotcli.render.layout.hairpin import link_ends
from aotcli.render.layout.routes import stroke_width
from aotcli.render.page import plain
from aotcli.render.scene_text import box_title, group_text
from aotcli.render.svg_style import CHANGE_COLORS, LINK_COLORS, look_of
from aotcli.render.units import bytes_text

MARK = "// written by aotcli\n"
_PIXELS_PER_INCH = 72.0
_SHAPES = {"round": "box", "cut": "octagon", "pill": "box", "slant": "parallelogram", "tab": "note"}


def render_dot(scene: Scene, title: str = "", sizes: Mapping[str, tuple[float, float]] | None = None) -> str:
    """The scene as DOT. `sizes` fixes boxes' width and height in pixels; otherwise Graphviz fits them to the text."""
    graph = pydot.Dot("aotcli", graph_type="digraph", strict=False)
    graph.set_graph_defaults(rankdir="TB", fontname=quoted("Helvetica"), fontsize="10", nodesep="0.15", ranksep="0.2")
    if title:
        graph.set("label", quoted(title))
        graph.set("labelloc", "t")
    graph.set_node_defaults(fontname=quoted("Helvetica"), fontsize="10", style="filled")
    graph.set_edge_defaults(fontname=quoted("Helvetica"), fontsize="9", arrowsize="0.6")
    clusters: dict[str, pydot.Dot | pydot.Subgraph] = {}
    for number, group in enumerate(scene.groups):
        cluster = pydot.Subgraph(f"cluster_{number}")
        cluster.set("label", quoted(group_text(group)))
        cluster.set("color", quoted("#aab2bd"))
        clusters[group.id] = cluster
        (clusters[group.parent] if group.parent is not None else graph).add_subgraph(cluster)
    usual = usual_dtype(scene)
    for box in scene.boxes:
        home = clusters[box.group] if box.group is not None else graph
        node = pydot.Node(quoted(box.id))
        for key, value in _node(box, usual, (sizes or {}).get(box.id)).items():
            node.set(key, value)
        home.add_node(node)
    largest = max((link.nbytes for link in scene.links if link.kind is LinkKind.SAVED), default=0)
    for link in scene.links:
        graph.add_edge(_edge(scene, link, largest))
    return MARK + graph.to_string()


def quoted(text: str) -> str:
    """`text` as a DOT string: what is no name needs quotes, and backslashes and quotes their own."""
    return '"' + plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lines(texts: Sequence[str]) -> str:
    return '"' + "\\n".join(quoted(text)[1:-1] for text in texts) + '"'


def _node(box: Box, usual: str, size: tuple[float, float] | None) -> dict[str, str]:
    look = look_of(box)
    styles = ["filled", *(["dashed"] if look.dashes else []), *(["rounded"] if look.shape in ("round", "pill") else [])]
    attributes = {
        "label": _lines(box_texts(box, usual)),
        "shape": _SHAPES[look.shape],
        "style": quoted(",".join(styles)),
        "fillcolor": quoted(look.fill),
        "color": quoted(CHANGE_COLORS.get(box.change, look.outline)),
        "penwidth": "1.8" if box.kind is BoxKind.MODULE else "1",
        "tooltip": _lines(box_title(box)),
        "id": quoted(box.id),
    }
    if size is not None:
        width, height = (f"{pixels / _PIXELS_PER_INCH:.4f}" for pixels in size)
        attributes |= {"width": width, "height": height, "fixedsize": "true", "label": '""', "shape": "box"}
    return attributes


def _edge(scene: Scene, link: Link, largest: int) -> pydot.Edge:
    source, target = link_ends(scene, link)
    climbs = scene.boxes[source].side is Side.BACKWARD and scene.boxes[target].side is Side.BACKWARD
    ends = (link.target, link.source) if climbs else (link.source, link.target)
    attributes = {
        "color": quoted(LINK_COLORS[link.kind]),
        "penwidth": f"{stroke_width(link, largest):.1f}",
        "tooltip": quoted(bytes_text(link.nbytes)),
        "class": quoted(link.kind.value),
    }
    if climbs:
        attributes["dir"] = "back"
    if link.kind is LinkKind.READ:
        attributes["style"] = "dotted"
    if link.kind is LinkKind.SAVED and scene.boxes[target].side is Side.SAVED:
        attributes["arrowhead"] = "none"
    edge = pydot.Edge(quoted(ends[0]), quoted(ends[1]))
    for key, value in attributes.items():
        edge.set(key, value)
    return edge
