"""A check as GitHub-flavoured Markdown: for a pull request, and for the summary of a job."""

from __future__ import annotations

from aotcli.ir.check import Breach, CheckRun, Contributor, FigureBreach, ModelCheck, Quantity, Verdict
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_words import (
    LABELS,
    VERDICT_WORDS,
    amount_text,
    breach_label,
    breach_text,
    changes_text,
    delta_text,
    line_cell,
    planner_text,
    run_text,
    select_contributors,
    shape_cell,
)
from aotcli.render.markdown import escape
from aotcli.render.page import plain
from aotcli.render.units import count_text, plural

_MOST_ROWS = 12


def render_check_markdown(run: CheckRun) -> str:
    """A table of all models, then what is behind each that is not ok."""
    lines = [f"### aotcli check: {run_text(run)}", "", "| | model | saved | peak | rerun |", "|---|---|--:|--:|--:|"]
    lines += [_row(check) for check in run.models]
    for check in run.models:
        if check.verdict is not Verdict.OK or check.notes or check.environment:
            lines += ["", *_section(check)]
    if run.orphans:
        lines += ["", *(f"- No model has {escape(path)}" for path in run.orphans)]
    return "\n".join(lines).rstrip() + "\n"


def _row(check: ModelCheck) -> str:
    word = VERDICT_WORDS[check.verdict]
    cells = [f"**{word}**" if check.exit_code else word, escape(check.name)]
    for quantity in Quantity:
        if check.now is None:
            cells.append("")
            continue
        text = amount_text(quantity, check.now.of(quantity))
        if check.before is not None:
            text += f" ({delta_text(quantity, check.before.of(quantity), check.now.of(quantity))})"
        cells.append(escape(text))
    return f"| {' | '.join(cells)} |"


def _section(check: ModelCheck) -> list[str]:
    lines = [f"**{VERDICT_WORDS[check.verdict]} {escape(check.name)}**: {_headline(check)}"]
    if check.failure is not None:
        reasons = [("why", check.failure.why), ("fix", check.failure.fix)]
        return [*lines, "", *(f"- {label}: {escape(' '.join(text.split()))}" for label, text in reasons if text)]
    facts = [f"baseline {check.baseline}" if check.before is not None else "", f"level {check.level}, {check.device}"]
    facts += [f"torch {check.torch}", changes_text(check.settings)]
    facts.append(f"accepted for: {check.reason}" if check.reason else "")
    lines += ["", escape(" · ".join(fact for fact in facts if fact))]
    breaches = [f"- {breach_label(breach)}: {escape(breach_text(breach))}" for breach in check.breaches]
    lines += ["", *breaches] if breaches else []
    for breach in check.breaches:
        if breach.contributors:
            lines += ["", *_table(breach)]
    notes = [f"graph: {text}" for text in structure_lines(check)]
    notes += [text for text in (planner_text(check), *check.notes) if text]
    lines += ["", *(f"- {escape(text)}" for text in notes)] if notes else []
    return [*lines, *_commands(check)]


def _headline(check: ModelCheck) -> str:
    if check.failure is not None:
        return escape(check.failure.what)
    if check.environment:
        return f"baseline of another environment, {escape(changes_text(check.environment))}"
    words = {Verdict.NEW: "no baseline yet", Verdict.BETTER: "less than the baseline by more than it may grow"}
    return words.get(check.verdict, f"breaks {plural(len(check.breaches), 'limit')}" if check.breaches else "kept")


def _table(breach: Breach) -> list[str]:
    rows = select_contributors(breach.contributors, _MOST_ROWS)
    figure = breach if isinstance(breach, FigureBreach) else None
    head = "" if figure is None else LABELS[figure.quantity]
    lines = [_line([head, "n", "module", "what", "shape", "line"]), "|--:|--:|---|---|---|---|"]
    lines += [_line(_cells(figure, row)) for row in rows.shown]
    if rows.rest:
        lines.append(_line([_amount(figure, rows.rest_amount), "", "", f"{rows.rest} more", "", ""]))
    return lines


def _cells(figure: FigureBreach | None, row: Contributor) -> list[str]:
    texts = [_amount(figure, row.amount), count_text(row.count), row.module, row.what, shape_cell(row), line_cell(row)]
    return [escape(text) for text in texts]


def _amount(figure: FigureBreach | None, amount: int) -> str:
    if figure is None:
        return ""
    sign = ("+" if amount > 0 else "−") if figure.grew else ""
    return f"{sign}{amount_text(figure.quantity, abs(amount))}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _commands(check: ModelCheck) -> list[str]:
    """What to type next, in a fence that no path can close."""
    commands = [plain(command) for command in (check.accept_command, check.look_command) if command]
    return ["", "````sh", *commands, "````"] if commands else []
