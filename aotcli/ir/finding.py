"""What `aotcli lint` finds in a step and its plan, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.ir.policy import PolicyRule
from aotcli.ir.tensor import Dim


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A line of `aotcli lint --list-rules`: a stable code (``AOT002``), a name, and what the rule looks for."""

    code: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a finding: a sentence, and the `lines` to change, paste or run, as they are."""

    text: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's that a finding names: what stands there, and ``file:line``."""

    what: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, equal ones of repeated layers folded: `count` of them, `nbytes` at stake together.

    `values` are node names of region `region` (empty where the finding is about no value). `module` has ``*`` for layer
    numbers; `source` is the line of the first, `sources` how many lines there are. `detail` says what was found,
    `places` the lines that contradict each other where two do. `rules` are those of a policy under
    which the values are computed again, none where nothing of the kind helps.
    """

    rule: str
    name: str
    region: str
    values: tuple[str, ...]
    module: str
    what: str
    shape: tuple[Dim, ...] | None
    dtype: str
    source: str | None
    sources: int
    count: int
    nbytes: int
    detail: str
    remedy: Remedy
    places: tuple[Place, ...] = ()
    rules: tuple[PolicyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """What one saves under the `rules` of all findings together, and the FLOPs that the backward then repeats."""

    rules: tuple[PolicyRule, ...]
    saved_bytes: int
    recompute_flops: int


@dataclass(frozen=True)
class LintReport:
    """What the chosen `rules` found in one plan, by rule, most bytes first.

    `saved_bytes` is what the plan saves, None where none exists. `small` findings, with `small_bytes` at stake in all
    but fewer than `min_bytes` each, are not among `findings`. `policy` is None where no finding has policy rules.
    """

    model: str
    strategy: str
    rules: tuple[RuleInfo, ...]
    findings: tuple[Finding, ...]
    saved_bytes: int | None
    min_bytes: int
    small: int = 0
    small_bytes: int = 0
    policy: PolicyPlan | None = None
    notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes at stake, over all findings."""
        return sum(finding.nbytes for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """1 with findings, else 0."""
        return 1 if self.findings else 0
