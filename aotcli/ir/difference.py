"""What differs between two training steps as they are planned: a left one and a right one.

Values of one graph stand for values of the other by a `Pairing` (aotcli/ir/pairing.py). What a plan does with a value
is its *fate*: saved for the backward, recomputed there, or neither. A change is a pair whose sides differ, or a value
that only one side has. Changes that repeat from layer to layer are one row with a count.

Everything here has two sides of equal standing, and `mirrored` exchanges them: the difference of B to A is that of A to
B, mirrored. Bytes of a change are right minus left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aotcli.ir.difference_rows import (
    Aspect,
    Cause,
    Fate,
    FateChange,
    Growth,
    NodeSide,
    Order,
    Rewrite,
    RewriteSide,
    SavedChange,
    SavedSide,
    ValueChange,
)

__all__ = [
    "Aspect",
    "Cause",
    "Confidence",
    "Difference",
    "EnvironmentChange",
    "Fate",
    "FateChange",
    "Growth",
    "NodeSide",
    "Order",
    "RegionDifference",
    "Rewrite",
    "RewriteSide",
    "SavedChange",
    "SavedSide",
    "SideInfo",
    "SideTotals",
    "ValueChange",
]


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
