"""Values that hold the elements of another one: views, casts and copies, followed back to where they come from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from aotcli.analysis.lint._region import GETITEM, PlannedRegion, is_view
from aotcli.ir.joint import Node
from aotcli.ir.tensor import TensorSpec

CASTS = frozenset({"aten._to_copy", "prims.convert_element_type"})
_COPIES = frozenset({"aten.clone", "aten.contiguous", "aten.lift_fresh_copy", "prims.clone"})

ITEM_BYTES = {
    **dict.fromkeys(("float64", "int64", "uint64", "complex32"), 8),
    **dict.fromkeys(("float32", "int32", "uint32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
    **dict.fromkeys(("int8", "uint8", "bool"), 1),
}
_SMALL_FLOATS = frozenset({"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"})
# A cast from the first to any of the second loses nothing, so that casting back gives the same bits.
_EXACT_CASTS = {
    "float16": frozenset({"float32", "float64"}),
    "bfloat16": frozenset({"float32", "float64"}),
    "float32": frozenset({"float64"}),
    **dict.fromkeys(_SMALL_FLOATS, frozenset({"float16", "bfloat16", "float32", "float64"})),
}


def copied_from(region: PlannedRegion, node: Node) -> Node | None:
    """The value whose elements `node` holds, as a view, a cast or a copy; None where it computes something."""
    if node.target == GETITEM:
        parent = region.reads(node)[0]
        return region.reads(parent)[0] if is_view(parent) and parent.target != GETITEM and parent.refs else None
    if is_view(node) or node.packet in CASTS or node.packet in _COPIES:
        reads = region.reads(node)
        return reads[0] if reads and isinstance(reads[0].value, TensorSpec) else None
    return None


def copy_path(region: PlannedRegion, node: Node) -> list[Node]:
    """`node`, what it was copied from, and so on to the first value that is computed or given."""
    path = [node]
    while (source := copied_from(region, path[-1])) is not None:
        path.append(source)
    return path


def is_exact_cast(source: str, target: str) -> bool:
    """Whether a cast between two dtypes keeps every value (an equal dtype does)."""
    return source == target or target in _EXACT_CASTS.get(source, ())


def is_reversible(path: Sequence[Node]) -> bool:
    """Whether every step of a path keeps every element once, bit for bit: its end can be made from its start."""
    specs = [node.value for node in path if isinstance(node.value, TensorSpec)]
    return len(specs) == len(path) and all(
        element_count(copy) == element_count(source) and is_exact_cast(source.dtype, copy.dtype)
        for copy, source in pairwise(specs)
    )


def element_count(spec: TensorSpec) -> int:
    """Elements, by the traced sizes."""
    return math.prod(spec.sizes)


def narrows(source: str, target: str) -> bool:
    """Whether a cast leaves fewer bytes for each element."""
    return ITEM_BYTES.get(target, 8) < ITEM_BYTES.get(source, 0)
