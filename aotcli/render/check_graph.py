"""How a graph changed, in phrases: what `aotcli check` says of it below a breach."""

from __future__ import annotations

from aotcli.ir.check import ModelCheck, StructureBreach
from aotcli.ir.difference import Aspect, Difference, NodeSide, Rewrite, RewriteSide, ValueChange
from aotcli.render.page import plain
from aotcli.render.units import plural

_MOST_GRAPH_CHANGES = 4
_MOST_LABELS = 5
_CONSEQUENCES = (Aspect.LAYOUT, Aspect.WIRING)


def graph_changes(difference: Difference | None) -> list[str]:
    """How the graph changed, in phrases: ``12 × attention became bmm, where, softmax, bmm``.

    Layouts and wiring follow from what else changed: they are told where nothing else did.
    """
    if difference is None or difference.same_graph:
        return []
    rewrites = [text for rewrite in difference.rewrites if (text := _rewrite_text(rewrite))]
    telling = [_value_text(change) for change in difference.values if change.aspect not in _CONSEQUENCES]
    found = [*rewrites, *telling] or [_value_text(change) for change in difference.values]
    more = len(found) - _MOST_GRAPH_CHANGES
    return found if more <= 1 else [*found[:_MOST_GRAPH_CHANGES], f"and {more} more changes"]


def structure_lines(check: ModelCheck) -> list[str]:
    """`graph_changes`; where there are none, the first difference that the structure was found to have."""
    first = [breach.first for breach in check.breaches if isinstance(breach, StructureBreach) and breach.first]
    return graph_changes(check.difference) or first


def _rewrite_text(rewrite: Rewrite) -> str:
    left, right = _ops_text(rewrite.left), _ops_text(rewrite.right)
    module = rewrite.right.module or rewrite.left.module
    place = f" in {plain(module)}" if module else ""
    times = f"{rewrite.count} × " if rewrite.count > 1 else ""
    if left and right:
        return f"{times}{left} became {right}{place}"
    if left or right:
        return f"{times}{left or right}{place} {'is gone' if left else 'is new'}"
    return ""


def _ops_text(side: RewriteSide) -> str:
    """The forward's ops, or the backward's where there are no others; views alone are nothing."""
    ops = side.forward or side.backward
    labels = [label if count == 1 else f"{count} {label}" for label, count in ops]
    more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS + 1 else ""
    shown = labels[:_MOST_LABELS] if more else labels
    where = "" if side.forward or not labels else "backward "
    return f"{where}{', '.join(shown)}{more}"


def _value_text(change: ValueChange) -> str:
    left, right = ("×".join(str(each) for each in side) for side in (change.left_value, change.right_value))
    return f"{change.aspect} {left} → {right}{_of(change.right)}, {plural(change.count, 'value')}"


def _of(side: NodeSide) -> str:
    what = f" of {side.what}" if side.what else ""
    return f"{what} in {plain(side.module)}" if side.module else what
