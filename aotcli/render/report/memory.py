"""The memory timeline of a region: which op runs at each step, and which allocations live from step to step."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.lifetimes import Use
from aotcli.analysis.report import RegionReport

# In the order in which the chart stacks them, from the bottom.
USES = (Use.SAVED, Use.RESULT, Use.GRADIENT, Use.RECOMPUTED, Use.RANDOM_STATE, Use.TANGENT, Use.TEMPORARY)


def memory_document(region: RegionReport) -> dict[str, Any]:
    """Columns over steps and over allocations. Both ends of an allocation's life are steps at which it lives; what is
    live at a step is the sum of those that live there."""
    graph, found = region.graph, region.lifetimes
    timeline = found.timeline
    places = {use: place for place, use in enumerate(USES)}
    return {
        "steps": [graph.index.get(name, -1) for name in timeline.names],
        "forward_steps": timeline.forward_steps,
        "held_bytes": timeline.held_bytes,
        "peak_bytes": timeline.peak_bytes,
        "peak_at": timeline.peak_at,
        "uses": [use.value for use in USES],
        "node": [graph.index.get(each.name, -1) for each in found.allocations],
        "nbytes": [each.nbytes for each in found.allocations],
        "born": [each.born for each in found.allocations],
        "life": [each.dies - each.born for each in found.allocations],
        "use": [places[each.use] for each in found.allocations],
    }
