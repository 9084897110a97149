"""`aotcli check` and `aotcli accept` as text: the verdict of each model, what makes a breach, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from textwrap import dedent

from aotcli.ir.check import Acceptance, CheckRun, ModelCheck, Quantity, Verdict
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_table import breach_tables
from aotcli.render.check_words import (
    LABELS,
    VERDICT_WORDS,
    breach_label,
    breach_text,
    changes_text,
    delta_text,
    figures_text,
    gain_text,
    limited,
    planner_text,
    run_text,
    seconds_text,
    step_text,
)
from aotcli.render.header import flow
from aotcli.render.page import Page, plain
from aotcli.render.units import bytes_text

_VERDICT_WIDTH = 6
_LABEL_WIDTH = 7
_INDENT = 6
_WIDEST_NAME = 24
_STEP_WIDTH = 11
_STYLES = {
    Verdict.OK: ("green",),
    Verdict.BETTER: ("green",),
    Verdict.NEW: ("bold", "yellow"),
    Verdict.FAIL: ("bold", "red"),
    Verdict.ERROR: ("bold", "red"),
}


def name_width(names: Sequence[str]) -> int:
    """The width of the column of names."""
    return min(max((len(name) for name in names), default=0), _WIDEST_NAME)


def render_model_text(check: ModelCheck, page: Page, width: int = 0, *, quiet: bool = False) -> str:
    """One model's verdict; after it, where it is none to pass over, what is behind it. `width` is that of names."""
    lines = _head(page, check, max(width, len(check.name)))
    if check.verdict is not Verdict.OK:
        lines += _baseline(page, check)
        lines += breach_tables(page, check.breaches, _INDENT)
        lines += _graph(page, check)
    if not quiet:
        lines += _notes(page, check)
        lines += _next_steps(page, check)
    if len(lines) > 1 and not quiet:
        lines.append("")
    return page.finish(lines) if lines[-1] else page.finish(lines) + "\n"


def _head(page: Page, check: ModelCheck, width: int) -> list[str]:
    word = VERDICT_WORDS[check.verdict]
    first = f"{page.style(word, *_STYLES[check.verdict])}{' ' * (_VERDICT_WIDTH - len(word))}"
    first += f"{page.style(plain(check.name), 'bold')}{' ' * (width - len(check.name) + 2)}"
    indent = _VERDICT_WIDTH + width + 2
    lines = [line for label, text in _verdict_parts(check) for line in _part(page, indent, label, text)]
    return [first + lines[0][indent:], *lines[1:]]


def _part(page: Page, indent: int, label: str, text: str) -> list[str]:
    head = " " * indent + (label.ljust(_LABEL_WIDTH) if label else "")
    return page.wrap(plain(text), indent + (_LABEL_WIDTH if label else 0), head)


def _verdict_parts(check: ModelCheck) -> list[tuple[str, str]]:
    """(label, text) of each line of the verdict. Another environment comes first."""
    if check.failure is not None:
        return [("", check.failure.what)]
    parts: list[tuple[str, str]] = []
    if check.environment:
        parts.append(("", f"baseline of another environment: {changes_text(check.environment)}"))
    parts += [(breach_label(breach), breach_text(breach)) for breach in check.breaches]
    if check.verdict is Verdict.FAIL or check.now is None:
        return parts
    if check.gains:
        parts += [(LABELS[gain.quantity], gain_text(gain)) for gain in check.gains]
        return parts
    text = figures_text(check.now, check.before, limited(check))
    parts.append(("", f"{text}   no baseline yet" if check.verdict is Verdict.NEW else text))
    return parts


def _baseline(page: Page, check: ModelCheck) -> list[str]:
    if check.before is None:
        return []
    parts = [f"baseline {check.baseline}"]
    if not check.environment:
        parts.append("environment same")
    parts += [f"level {check.level}, {check.device}"]
    if check.settings:
        parts.append(changes_text(check.settings))
    if check.reason:
        parts.append(f"accepted for: {check.reason}")
    return flow(page, [plain(part) for part in parts], _INDENT)


def _graph(page: Page, check: ModelCheck) -> list[str]:
    lines: list[str] = []
    for text in structure_lines(check):
        lines += page.wrap(plain(text), _INDENT + 7, " " * _INDENT + ("graph: " if not lines else ""))
    return ["", *lines] if lines and any(breach.contributors for breach in check.breaches) else lines


def _notes(page: Page, check: ModelCheck) -> list[str]:
    texts = [text for text in (planner_text(check), *check.notes) if text]
    if check.verdict is Verdict.OK and check.settings:
        texts.append(f"the baseline was traced otherwise: {changes_text(check.settings)}")
    return [line for text in texts for line in page.wrap(plain(text), _INDENT + 6, " " * _INDENT + "note: ")]


def _next_steps(page: Page, check: ModelCheck) -> list[str]:
    if check.failure is not None:
        pairs = [("why:", check.failure.why), ("fix:", check.failure.fix)]
        return [line for label, text in pairs if text for line in _lines(page, label, text)]
    labels = {Verdict.FAIL: "intended?", Verdict.NEW: "keep it:", Verdict.BETTER: "hold it:"}
    if check.verdict not in labels:
        return []
    steps = [(labels[check.verdict], check.accept_command), ("look:", check.look_command)]
    lines = [f"{' ' * _INDENT}{label:<{_STEP_WIDTH}}{plain(command)}" for label, command in steps if command]
    return ["", *lines] if check.verdict is Verdict.FAIL else lines


def _lines(page: Page, label: str, text: str) -> list[str]:
    """Text that may have lines of its own (what to paste), under its label."""
    first, _, others = text.partition("\n")
    rest = dedent(others).splitlines()
    lines = page.wrap(plain(first), _INDENT + 5, " " * _INDENT + label)
    return lines + [" " * (_INDENT + 5) + plain(line) for line in rest]


def render_run_text(run: CheckRun, page: Page, *, quiet: bool = False) -> str:
    """The line that closes a run, after what is to be said of all models together."""
    lines: list[str] = []
    for path in () if quiet else run.orphans:
        name = path.replace("\\", "/").rpartition("/")[2].removesuffix(".aot.json")
        text = f"no model has {path}: delete it, or write [tool.aotcli.check.models.{name}]"
        lines += page.wrap(plain(text), 6, "note: ")
    text = f"{run_text(run)} in {seconds_text(run.elapsed_s)}"
    style = ("bold", "red") if run.exit_code else ("bold", "green")
    return page.finish([*lines, *(page.style(line, *style) for line in page.wrap(text, 0))])


def render_check_text(run: CheckRun, page: Page, *, quiet: bool = False) -> str:
    """All models and the closing line."""
    width = name_width([check.name for check in run.models])
    models = [render_model_text(check, page, width, quiet=quiet) for check in run.models]
    return "".join([*models, render_run_text(run, page, quiet=quiet)])


def render_accepted_text(accepted: Sequence[Acceptance], page: Page) -> str:
    """What was accepted, and what to do with it."""
    lines: list[str] = []
    for each in accepted:
        name = page.style(plain(each.name), "bold")
        now = each.now.saved_bytes
        change = f"saved {bytes_text(now)}"
        if each.before is not None:
            before = each.before.saved_bytes
            change = f"saved {step_text(Quantity.SAVED, before, now)}  {delta_text(Quantity.SAVED, before, now)}"
        lines.append(f"accepted {name}  {change}")
        lines.append(
            f"  {plain(each.path)}, {bytes_text(each.nbytes)}{': ' if each.reason else ''}{plain(each.reason)}"
        )
    paths = " ".join(shlex.quote(each.path) for each in accepted)
    return page.finish([*lines, "", f"Next:  git add {paths}"])
