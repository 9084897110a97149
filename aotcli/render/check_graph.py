"""How a graph changed, in a few phrases below a breach; `aotcli diff` tells all of it, in the same words."""

from __future__ import annotations

from aotcli.ir.check import ModelCheck, StructureBreach
from aotcli.ir.difference import Aspect, Difference
from aotcli.render.diff_words import is_free_rewrite, rewrite_text, value_text

_MOST = 4
_CONSEQUENCES = (Aspect.LAYOUT, Aspect.WIRING)


def graph_changes(difference: Difference | None) -> list[str]:
    """How the graph changed: ``12 × h.*: attention became bmm, where, softmax, bmm``.

    Views, layouts and wiring follow from what else changed: they are told where nothing else did.
    """
    if difference is None or difference.same_graph:
        return []
    telling = [rewrite_text(row) for row in difference.rewrites if not is_free_rewrite(row)]
    telling += [value_text(row) for row in difference.values if row.aspect not in _CONSEQUENCES]
    found = telling or [*map(rewrite_text, difference.rewrites), *map(value_text, difference.values)]
    more = len(found) - _MOST
    return found if more <= 1 else [*found[:_MOST], f"and {more} more changes"]


def structure_lines(check: ModelCheck) -> list[str]:
    """`graph_changes`; where there are none, the first difference that the structure was found to have."""
    first = [breach.first for breach in check.breaches if isinstance(breach, StructureBreach) and breach.first]
    return graph_changes(check.difference) or first
