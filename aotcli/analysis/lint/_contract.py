"""What a rule is: one class in a file of its own, found by the file's name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._chain import Chain
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.lint._rules_for import recompute_rules
from aotcli.analysis.op_names import storage_maker
from aotcli.ir.finding import Place, Remedy, RuleInfo
from aotcli.ir.policy import PolicyRule
from aotcli.ir.tensor import Dim
from aotcli.ir.trace import Trace


@dataclass(frozen=True)
class Subject:
    """What is looked at: a trace, and its regions with the plan of one strategy."""

    trace: Trace
    regions: tuple[PlannedRegion, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """One finding before equal ones are folded. `values` are all on one storage, or empty; `nbytes` are at stake;
    `rules` are a policy's that computes the values again."""

    region: str
    values: tuple[str, ...]
    module: str | None
    module_type: str | None
    what: str
    shape: tuple[Dim, ...] | None
    dtype: str
    source: str | None
    nbytes: int
    detail: str
    remedy: Remedy
    places: tuple[Place, ...] = ()
    rules: tuple[PolicyRule, ...] = ()


class Rule(ABC):
    """Looks for one thing. `code` is stable; `rank` orders rules that report the same value: the lowest has it, because
    it says most."""

    code: ClassVar[str]
    name: ClassVar[str]
    summary: ClassVar[str]
    rank: ClassVar[int]

    @abstractmethod
    def find(self, subject: Subject) -> Iterator[Hit]:
        """Hits in the order of the graph."""

    @classmethod
    def info(cls) -> RuleInfo:
        return RuleInfo(cls.code, cls.name, cls.summary)


def tensor_hit(
    region: PlannedRegion, tensor: SavedTensor, nbytes: int, detail: str, remedy: Remedy, chain: Chain | None
) -> Hit:
    """A hit on a saved tensor with `nbytes` at stake; `chain` is how it can be computed again, where it can."""
    return Hit(
        region=region.graph.name,
        values=tuple(value.name for value in tensor.values),
        module=tensor.path,
        module_type=tensor.module_type,
        what=tensor.what,
        shape=tensor.spec.shape,
        dtype=tensor.spec.dtype,
        source=storage_maker(region.graph, tensor.values[0].name).source or tensor.values[0].source,
        nbytes=nbytes,
        detail=detail,
        remedy=remedy,
        rules=recompute_rules(region, tensor, chain) if chain is not None else (),
    )
