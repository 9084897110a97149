"""What is demanded of a model's plan, what it was held against, and what came of it: `aotcli check` as plain data.

Bytes and FLOPs are integers. A baseline itself, as a file, is in aotcli/ir/baseline.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from aotcli.ir.difference import Difference, EnvironmentChange
from aotcli.ir.tensor import Dim
from aotcli.ir.trace import CaptureSettings


class Quantity(StrEnum):
    """A figure of a plan that can be limited."""

    SAVED = "saved_bytes"
    PEAK = "peak_bytes"
    RECOMPUTE = "recompute_flops"

    @property
    def in_bytes(self) -> bool:
        return self is not Quantity.RECOMPUTE


@dataclass(frozen=True, slots=True)
class Figures:
    """What a plan costs, over all regions: activations saved, the predicted peak, FLOPs computed a second time."""

    saved_bytes: int
    peak_bytes: int
    recompute_flops: int

    def of(self, quantity: Quantity) -> int:
        amounts = {
            Quantity.SAVED: self.saved_bytes,
            Quantity.PEAK: self.peak_bytes,
            Quantity.RECOMPUTE: self.recompute_flops,
        }
        return amounts[quantity]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much more than the baseline is allowed: a share of it, or an amount (bytes or FLOPs)."""

    share: Fraction = Fraction(0)
    amount: int = 0

    def above(self, before: int) -> int:
        """The most that is allowed where the baseline has `before`."""
        return before + int(before * self.share) + self.amount

    def below(self, before: int) -> int:
        """The least that is no improvement worth a new baseline."""
        return before - int(before * self.share) - self.amount


@dataclass(frozen=True, slots=True)
class Limit:
    """What is demanded of one figure: at most `most`, and at most `growth` more than the baseline."""

    quantity: Quantity
    most: int | None = None
    growth: Tolerance | None = None


class Structure(StrEnum):
    """How alike the graph must be to the baseline's.

    EXACT: the same fingerprint, region by region. EQUIVALENT: the same once dead code and common subexpressions are
    gone (the order of independent ops is in no fingerprint). IGNORE: any other, or not looked at.
    """

    EXACT = "exact"
    EQUIVALENT = "equivalent"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Limits:
    """All that is demanded of one model. `forbid_ops` are op names, with or without overload, or patterns with ``*``.

    With `strict_env`, `structure` is enforced although the baseline was made in another environment.
    """

    figures: tuple[Limit, ...] = ()
    forbid_ops: tuple[str, ...] = ()
    structure: Structure = Structure.IGNORE
    strict_env: bool = False


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model to check. `spec` is as the configuration spells it, `target` as seen from the current folder: a model or
    a record (`is_record`). `words` is `target` with capture options, as typed. `config` is the file that demands this.
    `test` is the id of the test that does, "" where a configuration does."""

    name: str
    spec: str
    target: str = ""
    strategy: str = "mincut"
    limits: Limits = field(default_factory=Limits)
    settings: CaptureSettings = field(default_factory=CaptureSettings)
    cache: bool = True
    is_record: bool = False
    words: str = ""
    config: str = "pyproject.toml"
    test: str = ""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One row of what makes a difference: `amount` bytes or FLOPs more (less, where negative) in `count` values.

    `module` is folded by layer, `source` is ``file:line``; `gone` rows are the baseline's: the graph (or its peak) no
    longer has them.
    """

    amount: int
    count: int
    module: str
    what: str
    shape: tuple[Dim, ...] = ()
    dtype: str = ""
    source: str | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class FigureBreach:
    """A figure above its limit. `growth` is None where the limit is `max`; `allowed` is the most that would do.

    `contributors` make up the difference to the baseline where the figure `grew`, else the figure itself.
    """

    quantity: Quantity
    now: int
    allowed: int
    before: int | None = None
    growth: Tolerance | None = None
    contributors: tuple[Contributor, ...] = ()

    @property
    def rule(self) -> str:
        return f"{self.quantity}.{'max' if self.growth is None else 'growth'}"

    @property
    def grew(self) -> bool:
        return self.before is not None and self.now > self.before


@dataclass(frozen=True, slots=True)
class OpBreach:
    """A forbidden op that the graph has, `count` times; the baseline has it `before` times (None: no baseline)."""

    pattern: str
    op: str
    count: int
    before: int | None = None
    contributors: tuple[Contributor, ...] = ()

    @property
    def rule(self) -> str:
        return "forbid_ops"


@dataclass(frozen=True, slots=True)
class StructureBreach:
    """Another graph than the baseline's. `found` is EQUIVALENT where it differs in nothing but what that allows, else
    IGNORE; `first` says where it first differs."""

    demanded: Structure
    found: Structure
    first: str = ""
    contributors: tuple[Contributor, ...] = ()  # always empty: a graph has no rows

    @property
    def rule(self) -> str:
        return "structure"


Breach = FigureBreach | OpBreach | StructureBreach


@dataclass(frozen=True, slots=True)
class Gain:
    """A figure that fell by more than it may grow: the baseline no longer holds the ground that was won."""

    quantity: Quantity
    before: int
    now: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a model could not be checked: what happened, why, the fix, and the exit code that it means."""

    what: str
    why: str
    fix: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A baseline that was just accepted: its path and size, its figures, and those of the one that it replaces."""

    name: str
    path: str
    nbytes: int
    now: Figures
    before: Figures | None
    reason: str


class Verdict(StrEnum):
    """What came of one model."""

    OK = "ok"
    BETTER = "better"  # ok, and a figure fell by more than it may grow
    NEW = "new"  # there is no baseline
    FAIL = "FAIL"
    ERROR = "ERROR"  # it could not be checked


_EXIT_CODES = {Verdict.OK: 0, Verdict.BETTER: 0, Verdict.NEW: 1, Verdict.FAIL: 1}


@dataclass(frozen=True)
class ModelCheck:
    """One model held against its baseline.

    `baseline` is the path of the baseline, there or not; `written` that of the new one, None where none was written.
    `now` is None where nothing could be planned, `before` None without a baseline. `torch`, `device` and `level` say
    how the model was traced now, `environment` and `settings` in what the baseline was traced otherwise. `structure` is
    how alike the graphs are (None: nothing to compare with); `difference` is that of the two plans, where there is one
    to explain. `replanned` is what this aotcli makes of the baseline's own graph, where that is not what was accepted.
    `reason` is why the baseline was accepted. `accept_command` and `look_command` are what to type next.
    """

    model: CheckedModel
    baseline: str
    now: Figures | None = None
    before: Figures | None = None
    breaches: tuple[Breach, ...] = ()
    gains: tuple[Gain, ...] = ()
    environment: tuple[EnvironmentChange, ...] = ()
    settings: tuple[EnvironmentChange, ...] = ()
    torch: str = ""
    device: str = ""
    level: str = ""
    structure: Structure | None = None
    difference: Difference | None = None
    replanned: Figures | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    written: str | None = None
    failure: Failure | None = None
    accept_command: str = ""
    look_command: str = ""
    elapsed_s: float = field(default=0.0, compare=False)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def verdict(self) -> Verdict:
        if self.failure is not None:
            return Verdict.ERROR
        if self.breaches:
            return Verdict.FAIL
        if self.before is None:
            return Verdict.NEW
        return Verdict.BETTER if self.gains else Verdict.OK

    @property
    def exit_code(self) -> int:
        return self.failure.exit_code if self.failure is not None else _EXIT_CODES[self.verdict]


@dataclass(frozen=True)
class CheckRun:
    """All models that were checked. `orphans` are baselines that no model of the configuration has."""

    models: tuple[ModelCheck, ...]
    orphans: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, *verdicts: Verdict) -> int:
        return sum(model.verdict in verdicts for model in self.models)

    @property
    def elapsed_s(self) -> float:
        return sum(model.elapsed_s for model in self.models)

    @property
    def exit_code(self) -> int:
        """The gravest: 3 where aotcli or the environment failed, 2 bad input, 1 a breach or a missing baseline."""
        return max((model.exit_code for model in self.models), default=0)
