"""A saved view of a small part that keeps the whole alive: the class token of a transformer holds all tokens.

Saving a view saves its storage. A copy of the part would let the rest go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.op_names import op_label
from aotcli.ir.finding import Remedy
from aotcli.ir.partition import SavedValue
from aotcli.ir.tensor import TensorSpec

_REMEDY = Remedy("copy the part that is used, so that the rest can be freed", ("x = x[:, 0].clone()",))
_PART = 2
"""A part is small where the whole is more than this many times its size."""


class KeptByView(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT008"
    name: ClassVar[str] = "kept by a view"
    summary: ClassVar[str] = "a saved view of a small part of a tensor keeps all of it"
    rank: ClassVar[int] = 5

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            for tensor in region.tensors:
                used = sum(value.value.nbytes for value in tensor.values if isinstance(value.value, TensorSpec))
                if used * _PART < tensor.nbytes:
                    detail = _detail(region, tensor)
                    yield tensor_hit(region, tensor, tensor.nbytes - used, detail, _REMEDY, None)


def _detail(region: PlannedRegion, tensor: SavedTensor) -> str:
    parts = [_part(region, value) for value in tensor.values]
    return f"the backward reads no more than {' and '.join(dict.fromkeys(parts))}, which keeps all of it"


def _part(region: PlannedRegion, value: SavedValue) -> str:
    """``select of 2×256``."""
    shape = value.value.shape if isinstance(value.value, TensorSpec) else ()
    return f"{op_label(region.graph[value.name].target)} of {'×'.join(map(str, shape)) or 'one element'}"
