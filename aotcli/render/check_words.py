"""What a check found in words and numbers: the parts that its text, Markdown, annotations and XML share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.ir.check import (
    Breach,
    CheckRun,
    Contributor,
    FigureBreach,
    Figures,
    Gain,
    ModelCheck,
    OpBreach,
    Quantity,
    Structure,
    Tolerance,
    Verdict,
)
from aotcli.ir.difference import EnvironmentChange
from aotcli.render.page import plain
from aotcli.render.units import bytes_text, dtype_text, magnitude_text, shape_text

LABELS = {Quantity.SAVED: "saved", Quantity.PEAK: "peak", Quantity.RECOMPUTE: "rerun"}
_FEWEST = 4
_NEGLIGIBLE = 0.005  # rows that together make less than this share of all that changed are one row
_VERBS = {Structure.EXACT: "is the baseline's", Structure.EQUIVALENT: "differs in dead or repeated code only"}


def amount_text(quantity: Quantity, amount: int) -> str:
    """``6.09 GiB``, ``2.15 TFLOP``."""
    return bytes_text(amount) if quantity.in_bytes else magnitude_text(amount, "FLOP")


def step_text(quantity: Quantity, before: int, now: int) -> str:
    """``6.09 → 10.60 GiB``; both units where they differ."""
    left, right = amount_text(quantity, before), amount_text(quantity, now)
    number, _, unit = left.partition(" ")
    return f"{number if unit == right.partition(' ')[2] else left} → {right}"


def delta_text(quantity: Quantity, before: int, now: int) -> str:
    """``+4.51 GiB (+74.0 %)``."""
    if now == before:
        return "same"
    sign = "+" if now > before else "−"
    amount = f"{sign}{amount_text(quantity, abs(now - before))}"
    if not before:
        return f"{amount} (from nothing)"
    share = 100.0 * abs(now - before) / before
    return f"{amount} ({sign}{share:.1f} %)" if share >= 0.05 else f"{amount} (under {sign}0.1 %)"


def tolerance_text(quantity: Quantity, growth: Tolerance) -> str:
    """``+1 %``, ``+64.0 MiB``."""
    if growth.amount:
        return f"+{amount_text(quantity, growth.amount)}"
    return f"+{float(growth.share * 100):g} %"


def limit_text(breach: FigureBreach) -> str:
    """``limit +1 %``, ``limit 2.00 GiB``."""
    if breach.growth is None:
        return f"limit {amount_text(breach.quantity, breach.allowed)}"
    return f"limit {tolerance_text(breach.quantity, breach.growth)}"


def breach_label(breach: Breach) -> str:
    if isinstance(breach, FigureBreach):
        return LABELS[breach.quantity]
    return "op" if isinstance(breach, OpBreach) else "graph"


def breach_text(breach: Breach) -> str:
    """The breach on one line, without its label."""
    if isinstance(breach, FigureBreach):
        return _figure_text(breach)
    if isinstance(breach, OpBreach):
        by = "" if breach.pattern == breach.op else f" by {breach.pattern}"
        baseline = "" if breach.before is None else f" (baseline {breach.before})"
        return f"{breach.op} × {breach.count}{baseline}, forbidden{by}"
    what = "differs" if breach.found is Structure.IGNORE else _VERBS[breach.found]
    return f'{what}, and structure is "{breach.demanded}"'


def _figure_text(breach: FigureBreach) -> str:
    quantity, now = breach.quantity, breach.now
    if breach.before is None or breach.before == now:
        over = amount_text(quantity, now - breach.allowed)
        same = "" if breach.before is None else " (as in the baseline)"
        return f"{amount_text(quantity, now)}{same}   {over} over the {limit_text(breach)}"
    return (
        f"{step_text(quantity, breach.before, now)}   {delta_text(quantity, breach.before, now)}, {limit_text(breach)}"
    )


def gain_text(gain: Gain) -> str:
    return f"{step_text(gain.quantity, gain.before, gain.now)}   {delta_text(gain.quantity, gain.before, gain.now)}"


def figures_text(now: Figures, before: Figures | None, quantities: Sequence[Quantity]) -> str:
    """``saved 1.2 MiB (same) · peak 3.4 MiB (+0.5 %)`` of what is saved and the figures that are limited, less those
    that are nothing and were nothing."""
    parts: list[str] = []
    for quantity in dict.fromkeys((Quantity.SAVED, *quantities)):
        amount = now.of(quantity)
        if quantity is not Quantity.SAVED and not amount and not (before is not None and before.of(quantity)):
            continue
        text = f"{LABELS[quantity]} {amount_text(quantity, amount)}"
        if before is not None:
            delta = delta_text(quantity, before.of(quantity), amount)
            text += f" ({delta.partition('(')[2].rstrip(')') or delta})"
        parts.append(text)
    return " · ".join(parts)


def limited(check: ModelCheck) -> tuple[Quantity, ...]:
    return tuple(limit.quantity for limit in check.model.limits.figures)


def changes_text(changes: Sequence[EnvironmentChange]) -> str:
    """``torch 2.12.0 → 2.13.0, device cpu → cuda``."""
    return ", ".join(plain(f"{change.what} {change.left} → {change.right}") for change in changes)


def planner_text(check: ModelCheck) -> str:
    """What this aotcli plans for the baseline's own graph; empty where that is what was accepted."""
    if check.replanned is None or check.before is None:
        return ""
    parts = [
        f"{LABELS[each]} {step_text(each, check.before.of(each), check.replanned.of(each))}"
        for each in Quantity
        if check.before.of(each) != check.replanned.of(each)
    ]
    return f"this aotcli plans the baseline's own graph otherwise: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class ContributorRows:
    """Rows to show, and what the others make together."""

    shown: tuple[Contributor, ...]
    rest: int
    rest_amount: int


def select_contributors(rows: Sequence[Contributor], most: int) -> ContributorRows:
    """The largest rows, a few at least, until what is left is negligible; one row alone is not worth hiding."""
    total = sum(abs(row.amount) for row in rows)
    kept = 0
    left = total
    while kept < len(rows) and kept < most and (kept < _FEWEST or left >= _NEGLIGIBLE * total):
        left -= abs(rows[kept].amount)
        kept += 1
    if kept == len(rows) - 1:
        kept += 1
    return ContributorRows(tuple(rows[:kept]), len(rows) - kept, sum(row.amount for row in rows[kept:]))


def shape_cell(row: Contributor) -> str:
    """``8×12×1024×1024 f32``."""
    return f"{shape_text(row.shape)} {dtype_text(row.dtype)}" if row.dtype else ""


def line_cell(row: Contributor) -> str:
    return "(gone)" if row.gone else row.source or ""


VERDICT_WORDS = {
    Verdict.OK: "ok",
    Verdict.BETTER: "ok",
    Verdict.NEW: "new",
    Verdict.FAIL: "FAIL",
    Verdict.ERROR: "ERROR",
}


def run_text(run: CheckRun) -> str:
    """``2 checked, 1 failed``."""
    parts = [f"{len(run.models)} checked"]
    for verdict, words in ((Verdict.FAIL, "failed"), (Verdict.NEW, "without a baseline"), (Verdict.ERROR, "in error")):
        count = run.count(verdict)
        parts += [f"{count} {words}"] if count else []
    return ", ".join(parts)


def seconds_text(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"
