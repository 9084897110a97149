"""Values kept in fp32 that hold no more than 16 bits each: casts that autocast, or a `.float()`, put in.

Either the saved value was cast up from a 16-bit one, which would do, or all that the backward reads of it is its cast
down again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._chain import find_chain
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._copies import CASTS, copy_path, is_exact_cast, narrows
from aotcli.analysis.lint._region import PlannedRegion, is_view
from aotcli.analysis.lint._words import dtype_word, value_phrase
from aotcli.ir.finding import Remedy
from aotcli.ir.joint import Node, NodeKind, arg_refs
from aotcli.ir.tensor import TensorSpec

_WIDE = frozenset({"float32", "float64"})


class WideCopy(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT004"
    name: ClassVar[str] = "fp32 copy"
    summary: ClassVar[str] = "a saved fp32 value that was cast up from 16 bits, or is cast down before it is read"
    rank: ClassVar[int] = 4

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            for tensor in region.tensors:
                if tensor.spec.dtype in _WIDE:
                    hit = _cast_up(region, tensor) or _cast_down(region, tensor)
                    if hit is not None:
                        yield hit


def _cast_up(region: PlannedRegion, tensor: SavedTensor) -> Hit | None:
    for node in copy_path(region, region.graph[tensor.values[0].name])[1:]:
        value = node.value
        if not isinstance(value, TensorSpec) or not narrows(tensor.spec.dtype, value.dtype):
            continue
        freed = tensor.nbytes - value.storage_nbytes
        if freed <= 0 or not is_exact_cast(value.dtype, tensor.spec.dtype):
            return None
        name = value_phrase(region, node, tensor.path)
        detail = f"cast up from {dtype_word(value.dtype)} {name}, which would do"
        remedy = Remedy(f"save the {value.dtype} value, and cast it again in the backward")
        return tensor_hit(region, tensor, freed, detail, remedy, find_chain(region, tensor, given=(node.name,)))
    return None


def _cast_down(region: PlannedRegion, tensor: SavedTensor) -> Hit | None:
    casts: list[TensorSpec] = []
    pending = [node for value in tensor.values for node in region.readers.get(value.name, ())]
    for node in pending:
        if is_view(node):
            pending += region.readers.get(node.name, ())
        elif node.kind is NodeKind.OP and node.packet in CASTS and isinstance(node.value, TensorSpec):
            casts.append(node.value)
        else:
            return None
    dtypes = {cast.dtype for cast in casts}
    if len(dtypes) != 1 or not narrows(tensor.spec.dtype, dtype := dtypes.pop()) or _is_returned(region, pending):
        return None
    freed = tensor.nbytes - max(cast.storage_nbytes for cast in casts)
    if freed <= 0:
        return None
    detail = f"the backward reads nothing of it but its cast to {dtype_word(dtype)}"
    remedy = Remedy(f"cast to {dtype} in the forward, and use that from there on")
    return tensor_hit(region, tensor, freed, detail, remedy, None)


def _is_returned(region: PlannedRegion, nodes: list[Node]) -> bool:
    """Whether the backward returns a view of the value as it is."""
    returned = {name for arg in region.backward.outputs for name in arg_refs(arg)}
    return any(is_view(node) and node.name in returned for node in nodes)
