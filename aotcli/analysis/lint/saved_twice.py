"""Two saved values of the same elements: one is a view, a cast or a copy of the other, and has memory of its own.

Views on one storage are one tensor and cost nothing twice, so they are no finding; what looks like a view and was
copied (a transpose made contiguous) is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._chain import find_chain
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._copies import copy_path, is_reversible
from aotcli.analysis.lint._region import LASTING_KINDS, PlannedRegion
from aotcli.analysis.lint._words import dtype_word, value_phrase
from aotcli.ir.finding import Remedy
from aotcli.ir.joint import Node
from aotcli.ir.tensor import TensorSpec

_REMEDY = Remedy("keep one, and make the other from it in the backward")


class SavedTwice(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT006"
    name: ClassVar[str] = "saved twice"
    summary: ClassVar[str] = "two saved values of which one is a view, cast or copy of the other"
    rank: ClassVar[int] = 3

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            kept = _kept_storages(region)
            siblings: dict[str, list[tuple[SavedTensor, list[Node]]]] = {}
            for tensor in region.tensors:
                path = copy_path(region, region.graph[tensor.values[0].name])
                original = _original(tensor, path, kept)
                if original is not None:
                    yield _hit(region, tensor, original)
                elif len(path) > 1:
                    siblings.setdefault(path[-1].name, []).append((tensor, path))
            for group in siblings.values():
                yield from _sibling_hits(region, group)


def _kept_storages(region: PlannedRegion) -> frozenset[int]:
    """Storages that the backward is handed, or that live from step to step."""
    lasting = {node.name for node in region.graph.placeholders if node.kind in LASTING_KINDS}
    names = (region.saved | lasting) - frozenset(region.graph.mutated)
    values = [region.graph[name].value for name in names]
    return frozenset(value.storage for value in values if isinstance(value, TensorSpec) and value.storage >= 0)


def _original(tensor: SavedTensor, path: list[Node], kept: frozenset[int]) -> Node | None:
    """The nearest value on the way back from a saved tensor that is kept on a storage of its own."""
    for node in path[1:]:
        value = node.value
        if isinstance(value, TensorSpec) and value.storage in kept and value.storage != tensor.spec.storage:
            return node
    return None


def _sibling_hits(region: PlannedRegion, group: list[tuple[SavedTensor, list[Node]]]) -> Iterator[Hit]:
    """Of several copies of one value that is not saved, all but the smallest that the others can be made from."""
    whole = [(tensor, path) for tensor, path in group if is_reversible(path)]
    if not whole:
        return
    keep, kept_path = min(whole, key=lambda pair: pair[0].nbytes)
    for tensor, _ in group:
        if tensor is not keep:
            yield _hit(region, tensor, kept_path[0])


def _hit(region: PlannedRegion, tensor: SavedTensor, original: Node) -> Hit:
    assert isinstance(original.value, TensorSpec)
    other = original.value.dtype
    kind = "a copy" if other == tensor.spec.dtype else f"a cast to {dtype_word(tensor.spec.dtype)}"
    detail = f"{kind} of {value_phrase(region, original, tensor.path)}, which the backward has as well"
    chain = find_chain(region, tensor, given=(original.name,))
    return tensor_hit(region, tensor, tensor.nbytes, detail, _REMEDY, chain)
