"""What stands in a picture's boxes, and what a pointer that rests on one is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aotcli.analysis.op_names import op_label
from aotcli.analysis.scene import Box, BoxKind, Change, Group, Link
from aotcli.ir.tensor import TensorSpec
from aotcli.render.page import plain
from aotcli.render.units import bytes_text, dtype_text, magnitude_text, plural, shape_text

MOST_OPS_LISTED = 12

# Before the label of what differs between two graphs.
CHANGE_SIGNS = {
    Change.SAME: "",
    Change.ADDED: "+ ",
    Change.REMOVED: "− ",
    Change.CHANGED: "≠ ",
    Change.NOW_SAVED: "+ ",
    Change.NOW_RECOMPUTED: "− ",
}


def box_lines(box: Box, usual_dtype: str = "") -> tuple[str, ...]:
    """The label and the detail: one line for small things. `usual_dtype` goes without saying."""
    if box.kind is BoxKind.SAVED:
        shape, size = saved_lines(box, usual_dtype)
        return plain(CHANGE_SIGNS[box.change] + shape), plain(size)
    label = CHANGE_SIGNS[box.change] + box.label
    if box.kind is BoxKind.MODULE and box.module_type and not any(char.isalpha() for char in label):
        label += f" {box.module_type}"  # a number alone says nothing
    label += f" ×{box.count}" if _says_count(box) else ""
    if box.kind in (BoxKind.TANGENT, BoxKind.RESULT):
        return (plain(label),)
    return (plain(label), plain(_detail(box, usual_dtype)))


def _says_count(box: Box) -> bool:
    if box.kind is BoxKind.PARAM:
        return False
    return box.count > 1 and (box.group is None or "*" not in box.group)


def saved_lines(box: Box, usual_dtype: str = "") -> tuple[str, str]:
    """``12 × 8192×3072`` and ``1.13 GiB``; of several values, the largest and how many more."""
    more = len(box.members) - 1
    shape = tensor_text(box.value, usual_dtype) if box.value is not None else "opaque"
    times = f"{box.count} × " if box.count > 1 else ""
    return f"{times}{shape}{f' +{more}' if more else ''}", _saved_size(box)


def _saved_size(box: Box) -> str:
    return bytes_text(box.nbytes) if box.nbytes or not box.kept_as else f"is {box.kept_as}"


def tensor_text(value: TensorSpec, usual_dtype: str = "") -> str:
    """``8192×3072``, with its dtype where that is not the usual one."""
    shape = shape_text(value.shape)
    return shape if value.dtype == usual_dtype else f"{shape} {dtype_text(value.dtype)}"


def _detail(box: Box, usual_dtype: str) -> str:
    shape = tensor_text(box.value, usual_dtype) if box.value is not None else ""
    if box.kind is BoxKind.PARAM:
        return f"{shape if box.ops == 1 else plural(box.ops, 'tensor')} · {bytes_text(box.nbytes)}"
    return shape or plural(box.ops, "op")


def box_title(box: Box) -> tuple[str, ...]:
    """Lines for a pointer that rests on the box: what it is, op, shape, dtype, bytes, FLOPs, source line."""
    lines = [_heading(box)]
    if box.targets:
        lines.append(_ops_text(box.targets))
    if box.value is not None:
        lines.append(f"{shape_text(box.value.shape)} {dtype_text(box.value.dtype)} {box.value.device}".strip())
    if box.kind is BoxKind.SAVED:
        lines.append(f"{bytes_text(box.nbytes)} in {plural(box.ops, 'value')}" + _per_layer(box))
        lines += [f"why: {reason}" for reason in box.reasons[:3]]
    else:
        lines.append(f"{bytes_text(box.nbytes)} of results" + _per_layer(box))
        lines.append("FLOPs unknown" if box.flops is None else magnitude_text(box.flops, "FLOP"))
    if box.source:
        lines.append(box.source)
    if box.members:
        lines.append(_cut_list(box.members))
    if box.change is not Change.SAME:
        lines.append(f"{box.change}{f': was {box.was}' if box.was else ''}")
    return tuple(plain(line) for line in lines)


def _heading(box: Box) -> str:
    where = box.module or "(model)"
    name = where if box.kind is BoxKind.MODULE else f"{box.label} in {where}"
    if box.kind in (BoxKind.TANGENT, BoxKind.RESULT, BoxKind.INPUT):
        name = box.label
    kind = f" ({box.module_type})" if box.module_type else ""
    again = (
        ", recomputed in the backward" if box.recomputed else f", {box.side}" if box.kind is not BoxKind.SAVED else ""
    )
    return f"{'saved: ' if box.kind is BoxKind.SAVED else ''}{name}{kind}{again}"


def _per_layer(box: Box) -> str:
    return f", {box.count} layers, {box.layers}" if box.count > 1 and box.layers else ""


def _ops_text(targets: Sequence[str]) -> str:
    if len(targets) == 1:
        return targets[0]
    counts = Counter(op_label(target) for target in targets)
    return _cut_list([f"{count} × {label}" if count > 1 else label for label, count in counts.items()])


def _cut_list(names: Sequence[str]) -> str:
    rest = len(names) - MOST_OPS_LISTED
    return ", ".join(names[:MOST_OPS_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def group_text(group: Group, *, kind: bool = True) -> str:
    """``h.* ×12 · Block``; without `kind`, ``h.* ×12``."""
    times = f" ×{group.count}" if group.count > 1 else ""
    type_text = f" · {group.module_type}" if kind and group.module_type else ""
    return plain(f"{group.label}{times}{type_text}")


def link_title(link: Link) -> str:
    """What passes along a link."""
    return f"{plural(link.values, 'value')}, {bytes_text(link.nbytes)}"
