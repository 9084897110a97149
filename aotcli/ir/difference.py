"""What differs between two training steps as they are planned: a left one and a right one.

Values of one graph stand for values of the other by a `Pairing` (aotcli/ir/pairing.py). What a plan does with a value
is its *fate*: saved for the backward, recomputed there, or neither. A change is a pair whose sides differ, or a value
that only one side has. Changes that repeat from layer to layer are one row with a count.

Everything here has two sides of equal standing, and `mirrored` exchanges them: the difference of B to A is that of A to
B, mirrored. Bytes of a change are right minus left.
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


@dataclass(frozen=True, slots=True)
class SideTotals:
    """One step in numbers. None is unknown: a plan file holds no graph."""

    saved_bytes: int
    saved_tensors: int
    saved_input_bytes: int
    nodes: int
    parameters: int | None = None
    forward_ops: int | None = None
    backward_ops: int | None = None
    recomputed_ops: int | None = None
    forward_flops: int | None = None
    backward_flops: int | None = None
    recompute_flops: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SideInfo:
    """Which step a side is: how it was named, the model, and the strategy that planned it."""

    name: str
    model: str
    strategy: str
    torch: str
    device: str
    level: str
    totals: SideTotals


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """What was traced differently: ``torch``, ``level``, ``device``, ``autocast`` ..., from one text to another."""

    what: str
    left: str
    right: str

    def mirrored(self) -> EnvironmentChange:
        return EnvironmentChange(self.what, self.right, self.left)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How nodes were paired: pairs by kind, and nodes without a partner."""

    exact: int = 0
    wired: int = 0
    near: int = 0
    aligned: int = 0
    changed: int = 0
    left_unpaired: int = 0
    right_unpaired: int = 0

    @property
    def pairs(self) -> int:
        return self.exact + self.wired + self.near + self.aligned + self.changed

    @property
    def nodes(self) -> int:
        """Nodes of both sides."""
        return 2 * self.pairs + self.left_unpaired + self.right_unpaired

    def mirrored(self) -> Confidence:
        return replace(self, left_unpaired=self.right_unpaired, right_unpaired=self.left_unpaired)


@dataclass(frozen=True, slots=True)
class RegionDifference:
    """One captured region on both sides; a name is "" where that side has no such region. `partial` says that one side
    is a plan file, which knows the saved values alone."""

    left: str
    right: str
    same_graph: bool
    confidence: Confidence
    left_nodes: int = 0
    right_nodes: int = 0
    partial: bool = False

    def mirrored(self) -> RegionDifference:
        return replace(
            self,
            left=self.right,
            right=self.left,
            confidence=self.confidence.mirrored(),
            left_nodes=self.right_nodes,
            right_nodes=self.left_nodes,
        )


@dataclass(frozen=True)
class Difference:
    """All that differs between two planned steps. Rows stand by weight: most bytes, then most nodes, first.

    `saved` has every saved tensor of either side, folded; `contributors` are those that differ. `graph_bytes` and
    `decision_bytes` add up to `saved_delta_bytes`: the first is what `yardstick`, one strategy applied to both graphs,
    makes of the change of graphs; the second is the rest. `yardstick` is empty where the graphs are equal.
    `unknown` says what could not be compared, in sentences.
    """

    left: SideInfo
    right: SideInfo
    environment: tuple[EnvironmentChange, ...]
    regions: tuple[RegionDifference, ...]
    saved: tuple[SavedChange, ...]
    fates: tuple[FateChange, ...]
    rewrites: tuple[Rewrite, ...]
    values: tuple[ValueChange, ...]
    graph_bytes: int
    decision_bytes: int
    yardstick: str
    unknown: tuple[str, ...] = ()

    @property
    def saved_delta_bytes(self) -> int:
        return self.right.totals.saved_bytes - self.left.totals.saved_bytes

    @property
    def contributors(self) -> tuple[SavedChange, ...]:
        """Rows of saved tensors that differ."""
        return tuple(row for row in self.saved if row.altered)

    @property
    def flips(self) -> tuple[FateChange, ...]:
        return tuple(row for row in self.fates if row.is_flip)

    @property
    def moves(self) -> tuple[FateChange, ...]:
        return tuple(row for row in self.fates if row.is_move)

    @property
    def same_graph(self) -> bool:
        """Whether all regions are the same graph, by fingerprint."""
        return all(region.same_graph for region in self.regions)

    @property
    def same_saved(self) -> bool:
        """Whether both plans save the same tensors at the same cost."""
        return not self.contributors

    @property
    def is_empty(self) -> bool:
        """Whether graphs and plans are the same. The environment may still differ."""
        return self.same_graph and self.same_saved and not self.fates and not self.values and not self.rewrites

    @property
    def confidence(self) -> Confidence:
        """How nodes were paired, in all regions."""
        parts = [region.confidence for region in self.regions]
        return Confidence(
            exact=sum(part.exact for part in parts),
            wired=sum(part.wired for part in parts),
            near=sum(part.near for part in parts),
            aligned=sum(part.aligned for part in parts),
            changed=sum(part.changed for part in parts),
            left_unpaired=sum(part.left_unpaired for part in parts),
            right_unpaired=sum(part.right_unpaired for part in parts),
        )

    def mirrored(self) -> Difference:
        """The same difference with its sides exchanged."""
        return Difference(
            left=self.right,
            right=self.left,
            environment=tuple(each.mirrored() for each in self.environment),
            regions=tuple(each.mirrored() for each in self.regions),
            saved=tuple(sorted((each.mirrored() for each in self.saved), key=lambda row: row.order)),
            fates=tuple(sorted((each.mirrored() for each in self.fates), key=lambda row: row.order)),
            rewrites=tuple(sorted((each.mirrored() for each in self.rewrites), key=lambda row: row.order)),
            values=tuple(sorted((each.mirrored() for each in self.values), key=lambda row: row.order)),
            graph_bytes=-self.graph_bytes,
            decision_bytes=-self.decision_bytes,
            yardstick=self.yardstick,
            unknown=self.unknown,
        )
