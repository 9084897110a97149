"""Large saved values that a few passes over memory would compute again.

mincut saves some of them on purpose: a matmul of the backward reads them, so they must exist there anyway, and saving
spares the passes. That is the right trade where time is short, and the first thing to give up where memory is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._chain import Chain, find_chain
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._region import LASTING_KINDS, PlannedRegion
from aotcli.analysis.lint._words import ops_phrase, value_phrase
from aotcli.ir.finding import Remedy
from aotcli.ir.joint import Node
from aotcli.ir.tensor import tensor_leaves

_MOST_OPS = 12
_MOST_PASSES = 24
"""Bytes that the chain may move for each byte that it frees. Ops are counted one by one, though a compiler fuses them:
a layer norm under autocast, decomposed, moves eleven."""


class CheapToRecompute(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT002"
    name: ClassVar[str] = "cheap to recompute"
    summary: ClassVar[str] = "a saved value that a few memory-bound ops would compute from what is there anyway"
    rank: ClassVar[int] = 9

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            for tensor in region.tensors:
                chain = find_chain(region, tensor, _MOST_OPS)
                if chain is None or not chain.ops or chain.moved_bytes > _MOST_PASSES * tensor.nbytes:
                    continue
                freed = tensor.nbytes - chain.extra_bytes
                if 2 * freed > tensor.nbytes:
                    yield tensor_hit(region, tensor, freed, _detail(region, tensor, chain), _REMEDY, chain)


_REMEDY = Remedy("compute it again in the backward")


def _detail(region: PlannedRegion, tensor: SavedTensor, chain: Chain) -> str:
    text = f"{ops_phrase(chain.ops)} would make it again from"
    if not chain.sources:
        return f"{text} sizes alone"
    origin = _origin(region, chain.sources)
    return f"{text} {value_phrase(region, origin, tensor.path)}, which the backward has anyway"


def _origin(region: PlannedRegion, sources: Sequence[Node]) -> Node:
    """The largest of the values that a chain starts from; where the backward computes that one again, what it does so
    from."""
    while True:
        values = [node for node in sources if node.kind not in LASTING_KINDS] or sources
        largest = max(values, key=_says_most)
        sources = region.reads(largest)
        if not sources or largest.name in region.saved:
            return largest


def _says_most(node: Node) -> tuple[bool, int]:
    """Constants say nothing; otherwise, the larger the more."""
    made_of_something = node.is_placeholder or bool(node.refs)
    return made_of_something, sum(leaf.nbytes for leaf in tensor_leaves(node.value))
