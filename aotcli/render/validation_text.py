"""What `aotcli validate` prints: the verdict of each strategy, then a row for each check."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome, StrategyValidation, Unit, Validation
from aotcli.render.header import flow
from aotcli.render.page import Page, plain
from aotcli.render.units import bytes_text, plural

_COLORS = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.INFO: "cyan", Outcome.SKIP: "dim"}
_NARROWEST_REASON = 24


def render_validation_text(validation: Validation, page: Page) -> str:
    """Header, strategies, notes."""
    lines = _header(validation, page)
    for strategy in validation.strategies:
        lines += ["", *_strategy(strategy, page)]
    if validation.notes:
        lines.append("")
        for note in validation.notes:
            lines += page.wrap(plain(note), 6, "Note")
    return page.finish(lines)


def verdict_text(strategy: StrategyValidation) -> str:
    """``8 passed, 1 failed, 3 skipped``."""
    words = {Outcome.PASS: "passed", Outcome.FAIL: "failed", Outcome.SKIP: "skipped"}
    counts = [f"{strategy.count(outcome)} {word}" for outcome, word in words.items() if strategy.count(outcome)]
    return ", ".join(counts) or "nothing was checked"


def verdict(strategy: StrategyValidation) -> Outcome:
    """FAIL with any failure, PASS where something was proven, SKIP where nothing was."""
    if strategy.count(Outcome.FAIL):
        return Outcome.FAIL
    return Outcome.PASS if strategy.proven else Outcome.SKIP


def header_texts(validation: Validation) -> list[str]:
    """What was run, in phrases."""
    device = f"{validation.device} ({validation.device_name})" if validation.device_name else validation.device
    return [
        f"{'model + loss' if validation.loss else 'model, no loss'}, {'train' if validation.train else 'eval'}",
        device,
        f"backend {validation.backend}",
        f"level {validation.level}",
        f"torch {validation.torch.partition('+')[0]}",
        f"seed {validation.seed}",
        f"compared with {validation.reference}",
    ]


def figure_text(check: CheckResult) -> str:
    """Measured against tolerance, in the row's unit; "" where there is no number."""
    if check.measured is None or check.unit is None:
        return ""
    if check.unit is Unit.COUNT and check.outcome is Outcome.PASS:
        return ""
    measured = number_text(check.measured, check.unit)
    if check.tolerance is None:
        return measured
    tolerance = number_text(check.tolerance, check.unit)
    if check.unit is Unit.BYTES:
        return f"{measured} / {tolerance}"
    if check.unit is Unit.COUNT:
        return f"{measured}, not {tolerance}"
    return f"{measured} {'≤' if check.measured <= check.tolerance else '>'} {tolerance}"


def number_text(number: float, unit: Unit) -> str:
    """A figure as people read it."""
    if unit is Unit.BYTES:
        return bytes_text(int(number))
    if unit is Unit.COUNT:
        return f"{int(number):,}"
    if unit is Unit.RATIO:
        return f"{number:.2f} ×"
    if unit is Unit.SECONDS:
        return f"{1e3 * number:.3g} ms"
    if unit is Unit.SHARE:
        return f"{100 * number:.2f} %"
    return "0" if not number else f"{number:.1e}"


def _header(validation: Validation, page: Page) -> list[str]:
    name = plain(validation.model)
    indent = min(len(name) + 2, 24)
    first = page.style(name, "bold") + " " * (indent - len(name))
    return flow(page, [plain(text) for text in header_texts(validation)], indent, first)


def _strategy(strategy: StrategyValidation, page: Page) -> list[str]:
    found = verdict(strategy)
    label = plain(strategy.label)
    lines = [
        f"{page.style(found.value, _COLORS[found], 'bold')}  {page.style(label, 'bold')}: {verdict_text(strategy)}"
    ]
    figures = {check: figure_text(check) for check in strategy.checks}
    name_width = max(len(check.check) for check in strategy.checks)
    # What failed is read first; what was skipped, last.
    order = (Outcome.FAIL, Outcome.PASS, Outcome.INFO, Outcome.SKIP)
    shown = sorted(strategy.checks, key=lambda check: order.index(check.outcome))
    figure_width = max(len(text) for text in figures.values())
    for check in shown:
        lines += _row(check, figures[check], name_width, figure_width, page)
    for note in strategy.notes:
        lines += page.wrap(plain(note), 6, "Note")
    return lines


def _row(check: CheckResult, figure: str, name_width: int, figure_width: int, page: Page) -> list[str]:
    style = _COLORS[check.outcome]
    head = f"{check.outcome.value}  {check.check:<{name_width}}"
    if check.outcome is not Outcome.SKIP and figure_width:
        head += f"  {figure:<{figure_width}}"
    head += "  "
    styled = page.style(check.outcome.value, style) + head[len(check.outcome.value) :]
    reason = plain(check.reason)
    if page.width - len(head) < _NARROWEST_REASON:
        lines = [styled, *page.wrap(reason, 6)]
    else:
        first, *rest = page.wrap(reason, len(head))
        lines = [styled + first.lstrip(), *rest]
    for detail in check.details:
        if detail != check.reason:
            lines += page.wrap(plain(detail), 8)
    return lines


def summary_text(validation: Validation) -> str:
    """One line: how many strategies passed."""
    passed = sum(strategy.proven for strategy in validation.strategies)
    return f"{passed} of {plural(len(validation.strategies), 'strategy', 'strategies')} passed"
