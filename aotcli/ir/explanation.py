"""Why a plan treats a value as it does: what an explanation holds, before it is put into words.

Values that repeat from layer to layer are one explanation with a count; its details are those of the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from aotcli.ir.difference import Fate
from aotcli.ir.partition import Category, Reason
from aotcli.ir.policy import PolicyRule
from aotcli.ir.tensor import Dim


@dataclass(frozen=True, slots=True)
class Place:
    """A node as a reader knows it: `what` is its op in a word or two, `target` the op's full name, `source` the line of
    the model's code (for a backward node that of the forward it belongs to)."""

    name: str
    what: str
    target: str
    module: str | None
    source: str | None


@dataclass(frozen=True, slots=True)
class Reader:
    """An op of the backward that needs a value. `via` are the views, and the ops that run again, through which it does;
    `gradient_of` is the parameter or input whose gradient it returns, if it does."""

    place: Place
    via: tuple[Place, ...] = ()
    gradient_of: str | None = None


class Quantity(StrEnum):
    """What a number of a fact counts."""

    BYTES = "bytes"
    FLOPS = "flops"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and what it counts."""

    value: int
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a rule looked at: a sentence with a `{}` for each of its amounts."""

    text: str
    amounts: tuple[Amount, ...] = ()


@dataclass(frozen=True, slots=True)
class Weight:
    """What saving a value costs in the min cut: `weight` is `nbytes` (as torch counts them) x 1.1 to the power of
    `exponent` (steps from the backward, 1 to 100), cut to a whole number, and twice that where all that reads it fuses
    with it. None where it cannot be saved. `free` says that it is a parameter or buffer, which weighs nothing."""

    weight: int | None
    nbytes: int
    distance: int
    exponent: int
    doubled: bool
    free: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """A guess at the time of some ops, each alone and limited by its FLOPs or its memory traffic, at the two speeds
    named. `share` is their part of the whole step, guessed in the same way: surer than the seconds."""

    seconds: float
    share: float
    flops_per_s: float
    bytes_per_s: float


class SourceKind(StrEnum):
    """What the first op of a chain starts from."""

    SAVED = "saved"
    KEPT = "kept"  # a parameter, buffer, input or result, in memory anyway
    FREE = "free"  # a seed or a constant


@dataclass(frozen=True, slots=True)
class ChainSource:
    """A value that a chain reads. `newly_saved` where the plan as it stands does not save it."""

    place: Place
    kind: SourceKind
    nbytes: int
    reason: str
    newly_saved: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Ops that run again to get a value, in order, without views; and what they start from. FLOPs of ops without a
    formula are left out; `unknown_flops` names those."""

    ops: tuple[Place, ...]
    views: int
    sources: tuple[ChainSource, ...]
    flops: int
    unknown_flops: tuple[str, ...]
    moved_bytes: int
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """`count` allocations of one kind that another plan treats otherwise. `nbytes` is the size of all of them together,
    `names` their makers."""

    before: Fate
    after: Fate
    count: int
    nbytes: int
    module: str
    what: str
    shape: tuple[Dim, ...]
    dtype: str
    names: tuple[str, ...]

    @property
    def of_saved(self) -> bool:
        """Whether these are saved under one of the two plans."""
        return Fate.SAVED in (self.before, self.after)


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """A plan of one step in numbers; `cut_value` where every region has one."""

    saved_bytes: int
    recompute_flops: int
    recomputed_ops: int
    peak_bytes: int
    cut_value: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a plan under a wish. `rows` are those of saved values first, then by size."""

    before: PlanTotals
    after: PlanTotals
    rows: tuple[ChangeRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def freed_bytes(self) -> int:
        """Net of what is saved instead."""
        return self.before.saved_bytes - self.after.saved_bytes

    @property
    def newly_saved(self) -> tuple[ChangeRow, ...]:
        return tuple(row for row in self.rows if row.after is Fate.SAVED)


@dataclass(frozen=True, slots=True)
class Flip:
    """The shortest annotation that turns a decision round: `rules` of a policy file, or `patterns` of the command line.
    `change` is what it does, None where nothing can turn it; `obstacle` says why then."""

    rules: tuple[PolicyRule, ...]
    patterns: tuple[str, ...]
    change: Change | None
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One kind of value. `place` is the op that made its memory, `names` the makers of all `count`, `saved_as` the
    values under which the first is handed on. `nbytes` are those of one, `total_bytes` of all. `without_rule` says what
    would become of the first if its rule did not hold, where that was tried. `chain` runs again now (RECOMPUTED), or
    would after the flip (SAVED). `leads_to` is what the backward gets in place of a value that stays in the forward."""

    region: str
    fate: Fate
    place: Place
    count: int
    names: tuple[str, ...]
    modules: str
    shape: tuple[Dim, ...]
    dtype: str
    nbytes: int
    total_bytes: int
    category: Category = Category.NONE
    saved_as: tuple[str, ...] = ()
    reason: Reason | None = None
    facts: tuple[Fact, ...] = ()
    weight: Weight | None = None
    without_rule: str = ""
    readers: tuple[Reader, ...] = ()
    chain: Chain | None = None
    flip: Flip | None = None
    leads_to: tuple[Place, ...] = ()
    notes: tuple[str, ...] = ()
