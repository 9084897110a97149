"""Plans of one region on and around the front of saved bytes against the cost of recomputing, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PointKind(StrEnum):
    """Where a point comes from."""

    CORNER = "corner"  # no plan is cheaper at its bytes or any mixture of bytes
    BETWEEN = "between"  # found between two corners
    STRATEGY = "strategy"  # another strategy's plan, for comparison


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One plan. `nbytes` are saved activations and random states; `cost` is in the front's unit; `peak_bytes` is
    predicted, without workspace. `bound` is the least that any plan of at most `nbytes` can cost, None where that is
    unknown (bytes below all plans). `label` names the strategy as `--strategy` takes it."""

    kind: PointKind
    label: str
    nbytes: int
    cost: int
    recompute_flops: int
    peak_bytes: int
    tensors: int
    recomputed: int
    bound: float | None

    @property
    def gap(self) -> float | None:
        """How far the cost may be above the least possible, as a share of it; None where the bound is 0 or unknown."""
        return self.cost / self.bound - 1 if self.bound else None


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """The front of region number `region` (from 0). `unit` of costs is "ps" or "FLOP"; `forward_cost` is what running
    the whole forward costs in it. `points` go from the most bytes to the fewest."""

    region: int
    unit: str
    pricing: str
    forward_cost: int
    eager_bytes: int | None
    points: tuple[ParetoPoint, ...]
    unknown: tuple[str, ...] = ()
