"""What a validation found: a row for each check of each strategy, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """PASS and FAIL are verdicts; INFO reports a figure that nothing was demanded of; SKIP says why nothing was."""

    PASS = "PASS"
    FAIL = "FAIL"
    SKIP = "SKIP"
    INFO = "INFO"


class Unit(StrEnum):
    """What `measured` and `tolerance` of a check are counted in."""

    BYTES = "bytes"
    SECONDS = "seconds"
    RATIO = "ratio"  # 1.00 is equal
    SHARE = "share"  # of the expected value: 0.01 is one percent
    ERROR = "error"  # relative to the reference: ‖x − ref‖ / ‖ref‖
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One row: `measured` may be at most `tolerance` (both in `unit`, None where there is no number).

    `reason` is a phrase for the row; `details` are lines that say more (first differences, single tensors).
    """

    check: str
    outcome: Outcome
    reason: str
    measured: float | None = None
    tolerance: float | None = None
    unit: Unit | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StrategyValidation:
    """The rows of one strategy, labelled as it was asked for. `notes` are the plan's own."""

    label: str
    checks: tuple[CheckResult, ...]
    notes: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many rows have this outcome."""
        return sum(check.outcome is outcome for check in self.checks)

    @property
    def proven(self) -> bool:
        """Whether something was demanded, and kept, and nothing failed."""
        return self.count(Outcome.PASS) > 0 and self.count(Outcome.FAIL) == 0


@dataclass(frozen=True, slots=True)
class Validation:
    """A model's compiled step against its eager one, under one or several strategies.

    `backend` is aot_eager or inductor, `level` the level at which it plans; `reference` says what results were
    compared with; `notes` are sentences about the model (it is not deterministic, it has no gradient).
    """

    model: str
    spec: str
    torch: str
    device: str
    device_name: str | None
    backend: str
    level: str
    seed: int
    steps: int
    rng: str
    train: bool
    loss: bool
    reference: str
    strategies: tuple[StrategyValidation, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where every strategy kept all that was demanded, 1 with a FAIL, 3 where one had nothing but skips."""
        if any(each.count(Outcome.FAIL) for each in self.strategies):
            return 1
        return 0 if self.strategies and all(each.proven for each in self.strategies) else 3
