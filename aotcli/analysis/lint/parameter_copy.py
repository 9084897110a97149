"""A copy of a parameter in another dtype that is kept from forward to backward: autocast's casts of weights, weights
quantized to fp8. The parameter itself is there all the time, and casting it again is one pass over it.

PyTorch's partitioner saves such copies because a matmul of the backward reads them (pytorch issue 141881).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._chain import find_chain
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._copies import element_count
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.lint._words import dtype_word
from aotcli.ir.finding import Remedy
from aotcli.ir.joint import Node, NodeKind, Tag
from aotcli.ir.tensor import TensorSpec

_MOST_OPS = 64
_NO_COPY = frozenset({Tag.RANDOM, Tag.COMPUTE_INTENSIVE})
_LASTING = frozenset({NodeKind.PARAM, NodeKind.BUFFER, NodeKind.ATTR})


class ParameterCopy(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT003"
    name: ClassVar[str] = "copy of a parameter"
    summary: ClassVar[str] = "a saved copy of a parameter in another dtype (autocast's casts, fp8 weights)"
    rank: ClassVar[int] = 2

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            for tensor in region.tensors:
                parameter = _copied_parameter(region, tensor)
                if parameter is not None:
                    assert isinstance(parameter.value, TensorSpec)
                    yield _hit(region, tensor, parameter, parameter.value.dtype)


def _hit(region: PlannedRegion, tensor: SavedTensor, parameter: Node, dtype: str) -> Hit:
    name = (parameter.origin or parameter.name).rpartition(".")[2]
    detail = f"a {dtype_word(tensor.spec.dtype)} copy of {dtype_word(dtype)} parameter {name}, which is there anyway"
    text = f"hold the parameter in {tensor.spec.dtype}, or cast it again in the backward"
    if tensor.spec.dtype.startswith("float8"):
        text = "quantize it again in the backward"
    return tensor_hit(region, tensor, tensor.nbytes, detail, Remedy(text), find_chain(region, tensor))


def _copied_parameter(region: PlannedRegion, tensor: SavedTensor) -> Node | None:
    """The parameter of equal size and another dtype, where a saved value is computed from parameters and nothing
    else."""
    pending = [region.graph[value.name] for value in tensor.values]
    seen = {node.name for node in pending}
    found: Node | None = None
    for node in pending:
        if node.kind in _LASTING:
            if node.name in region.graph.mutated:
                return None
            if node.kind is NodeKind.PARAM and _is_converted(node, tensor.spec):
                found = node
            continue
        if node.kind is not NodeKind.OP or not _NO_COPY.isdisjoint(node.tags) or len(seen) > _MOST_OPS:
            return None
        for source in region.reads(node):
            if source.name not in seen:
                seen.add(source.name)
                pending.append(source)
    return found


def _is_converted(parameter: Node, copy: TensorSpec) -> bool:
    value = parameter.value
    return isinstance(value, TensorSpec) and value.dtype != copy.dtype and element_count(value) == element_count(copy)
