"""The rows of a difference (aotcli/ir/difference.py): saved tensors, fates of ops, rewrites, changed values.

A row has two sides of equal standing, which `mirrored` exchanges, and a place in the two graphs, by which rows of equal
weight are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from aotcli.ir.tensor import Dim

Order = tuple[int, int, int, int, int, int]
"""A sort key of rows: weight, then the place in the graph. Only its last part knows left from right."""


def _places(at: tuple[int, int]) -> tuple[int, int, int]:
    places = [position if position >= 0 else 1 << 62 for position in at]
    return min(places), max(places), at[0]


class Fate(StrEnum):
    """What a plan does with a value."""

    SAVED = "saved"  # an activation that the forward hands to the backward
    KEPT = "kept"  # handed on too, and in memory anyway: a parameter, a buffer, an input, a result of the step
    RECOMPUTED = "recomputed"  # computed in the forward and once more in the backward
    FORWARD = "forward"  # computed in the forward, and not there for the backward
    BACKWARD = "backward"  # computed in the backward alone
    UNUSED = "unused"  # in neither: dead, or the same as another value
    ABSENT = "absent"  # the graph has no such value


class Growth(StrEnum):
    """What became of the bytes of a saved value."""

    ADDED = "added"
    REMOVED = "removed"
    GREW = "grew"
    SHRANK = "shrank"
    SAME = "same"


class Cause(StrEnum):
    """Why a saved value differs."""

    GRAPH = "graph"  # the graphs differ: one strategy, applied to both, makes the same difference
    DECISION = "decision"  # the same values, decided differently


class Aspect(StrEnum):
    """In what two paired values differ."""

    DTYPE = "dtype"
    SHAPE = "shape"
    LAYOUT = "layout"  # strides, or whose storage it is a view of
    DEVICE = "device"
    ARGUMENTS = "arguments"  # constants among the arguments
    WIRING = "wiring"  # what it reads
    POLICY = "policy"  # what activation checkpointing asks for it


@dataclass(frozen=True, slots=True)
class SavedSide:
    """One side of a row of tensors: `names` are the nodes that stand for them in that graph, in its order.

    `nbytes` is what saving them costs on that side, 0 where they are not saved. `module` is a path with ``*`` for the
    numbers of layers, `what` the op that made the memory, `source` the line of the first, `sources` how many different
    lines there are. `rule` and `reason` are empty where `fate` is not SAVED.
    """

    fate: Fate
    nbytes: int
    module: str
    what: str
    shape: tuple[Dim, ...]
    dtype: str
    source: str | None
    sources: int
    rule: str
    reason: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SavedChange:
    """`count` saved tensors of one kind, each a storage counted once; a side is None where that graph has none of them.

    At least one side is SAVED. `at` are the positions of the first in the two graphs, -1 where there is none. `tie`
    says that a row of the opposite sign has the same bytes in the same place of the graph: the two plans save as much
    there, and either is as good.
    """

    count: int
    left: SavedSide | None
    right: SavedSide | None
    cause: Cause
    at: tuple[int, int]
    region: int = 0
    tie: bool = False

    @property
    def order(self) -> Order:
        """The largest change first, then the largest row."""
        return (-abs(self.delta_bytes), -max(self.left_bytes, self.right_bytes), self.region, *_places(self.at))

    @property
    def left_bytes(self) -> int:
        return 0 if self.left is None else self.left.nbytes

    @property
    def right_bytes(self) -> int:
        return 0 if self.right is None else self.right.nbytes

    @property
    def delta_bytes(self) -> int:
        return self.right_bytes - self.left_bytes

    @property
    def left_fate(self) -> Fate:
        return Fate.ABSENT if self.left is None else self.left.fate

    @property
    def right_fate(self) -> Fate:
        return Fate.ABSENT if self.right is None else self.right.fate

    @property
    def shown(self) -> SavedSide:
        """The side that describes the row: the one that is saved, the right one where both are."""
        side = self.right if self.right is not None and self.right.fate is Fate.SAVED else self.left
        assert side is not None
        return side

    @property
    def growth(self) -> Growth:
        if self.left_fate is not Fate.SAVED:
            return Growth.ADDED
        if self.right_fate is not Fate.SAVED:
            return Growth.REMOVED
        if self.delta_bytes == 0:
            return Growth.SAME
        return Growth.GREW if self.delta_bytes > 0 else Growth.SHRANK

    @property
    def altered(self) -> bool:
        """Whether anything that a reader sees differs: bytes, fate, op, shape or dtype."""
        left, right = self.left, self.right
        if left is None or right is None or left.fate is not right.fate or self.delta_bytes != 0:
            return True
        return (left.what, left.shape, left.dtype) != (right.what, right.shape, right.dtype)

    def mirrored(self) -> SavedChange:
        return replace(self, left=self.right, right=self.left, at=self.at[::-1])


@dataclass(frozen=True, slots=True)
class NodeSide:
    """One side of a row of paired nodes: the module with ``*`` for layer numbers, the op, the first one's line, names
    in that graph's order, and the bytes of their values. Module and op are empty where the row is about all kinds."""

    module: str
    what: str
    source: str | None
    names: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class FateChange:
    """`count` paired ops of one kind that the two plans put elsewhere. Views, which cost nothing, are left out."""

    count: int
    left_fate: Fate
    right_fate: Fate
    left: NodeSide
    right: NodeSide
    cause: Cause
    at: tuple[int, int]
    region: int = 0

    @property
    def order(self) -> Order:
        return -self.count, 0, self.region, *_places(self.at)

    @property
    def fates(self) -> tuple[Fate, Fate]:
        return self.left_fate, self.right_fate

    @property
    def is_flip(self) -> bool:
        """From saved to recomputed, or back."""
        return {self.left_fate, self.right_fate} == {Fate.SAVED, Fate.RECOMPUTED}

    @property
    def is_move(self) -> bool:
        """From one half into the other."""
        fates = {self.left_fate, self.right_fate}
        return fates in ({Fate.FORWARD, Fate.BACKWARD}, {Fate.SAVED, Fate.BACKWARD})

    def mirrored(self) -> FateChange:
        return replace(
            self,
            left_fate=self.right_fate,
            right_fate=self.left_fate,
            left=self.right,
            right=self.left,
            at=self.at[::-1],
        )


@dataclass(frozen=True, slots=True)
class RewriteSide:
    """The ops of one side of a rewrite, in one of its places: labels with counts in graph order, those of the forward
    and those of the backward, views left out. `module` has ``*`` for layer numbers; `names` are all nodes in all
    places, views included, and `flops` are theirs. `free` says that they are views alone, which are then listed."""

    module: str
    forward: tuple[tuple[str, int], ...]
    backward: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    flops: int
    source: str | None
    free: bool = False

    @property
    def empty(self) -> bool:
        return not self.names


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Ops that became others, alike in `count` places; one side may be empty.

    `whole` says that all ops of that module are on one side only: the module itself was added or removed.
    """

    count: int
    left: RewriteSide
    right: RewriteSide
    at: tuple[int, int]
    whole: bool = False
    region: int = 0

    @property
    def order(self) -> Order:
        return -self.nodes, 0, self.region, *_places(self.at)

    @property
    def nodes(self) -> int:
        """Nodes of both sides, in all places."""
        return len(self.left.names) + len(self.right.names)

    def mirrored(self) -> Rewrite:
        return replace(self, left=self.right, right=self.left, at=self.at[::-1])


@dataclass(frozen=True, slots=True)
class ValueChange:
    """`count` paired nodes of the same op that differ in one `aspect`, from `left_value` to `right_value`.

    A change of dtype, device or extents that is the same all over the graph is one row. For a shape, the values are the
    extents that changed, or the whole shapes where their ranks differ; for arguments, the texts of the constants.
    """

    count: int
    aspect: Aspect
    left_value: tuple[Dim, ...]
    right_value: tuple[Dim, ...]
    left: NodeSide
    right: NodeSide
    at: tuple[int, int]
    region: int = 0

    @property
    def order(self) -> Order:
        return -self.count, 0, self.region, *_places(self.at)

    def mirrored(self) -> ValueChange:
        return replace(
            self,
            left_value=self.right_value,
            right_value=self.left_value,
            left=self.right,
            right=self.left,
            at=self.at[::-1],
        )
