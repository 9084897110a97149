"""``aotcli lint``: findings in a step and its plan, each with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import DEFAULT_STRATEGY, STRATEGY_PANEL, complete_strategy
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api.lint import LintResult
    from aotcli.cli.terminal import Terminal
    from aotcli.render.page import Page

FORMATS = ("text", "json", "markdown", "github")
RULES_PANEL = "Rules"


def complete_rule(incomplete: str) -> list[str]:
    """Codes of rules for the shell's completion."""
    from aotcli.api.lint import rule_infos

    return [info.code for info in rule_infos() if info.code.startswith(incomplete)]


@output_options
@capture_options
def lint(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="Whose plan is looked at: mincut (default), or another of `aotcli strategies`.",
            metavar="NAME",
            rich_help_panel=STRATEGY_PANEL,
            autocompletion=complete_strategy,
            show_default=False,
        ),
    ] = None,
    opt: Annotated[
        list[str] | None,
        typer.Option("--opt", help="Any option of the strategy.", metavar="K=V", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            help="Only these rules: codes or their beginnings, with commas.",
            metavar="CODES",
            rich_help_panel=RULES_PANEL,
            autocompletion=complete_rule,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            help="Not these rules.",
            metavar="CODES",
            rich_help_panel=RULES_PANEL,
            autocompletion=complete_rule,
        ),
    ] = None,
    min_bytes: Annotated[
        str | None,
        typer.Option(
            "--min-bytes",
            help="Leave out what has less at stake; default 1MiB.",
            metavar="SIZE",
            rich_help_panel=RULES_PANEL,
        ),
    ] = None,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="Print the rules and end.", rich_help_panel=RULES_PANEL)
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Every finding of a rule.")] = False,
    write_policy: Annotated[
        Path | None,
        typer.Option("--write-policy", help="Write a policy that does away with findings.", metavar="FILE"),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="text, json, markdown or github; by default what -o is called."),
    ] = None,
    output_path: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Look for what could be had for less in a training step, with a remedy each.

    Rules are listed by --list-rules and described in docs/lint.md; pyproject.toml may choose them, under
    tool.aotcli.lint.

    Ends with 0, with 1 where something was found, with 2 for bad input.
    """
    from aotcli import api
    from aotcli.api.lint import lint as run
    from aotcli.cli.commands.partition import strategy_options
    from aotcli.cli.lint_options import lint_choices
    from aotcli.cli.output import choose_format, refuse_foreign
    from aotcli.cli.target import find_target
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    if list_rules:
        _list_rules(terminal)
        return
    chosen_format = choose_format(format_name, output_path, FORMATS)
    choices = lint_choices(select, ignore, min_bytes)
    for path in (output_path, write_policy):
        if path is not None and not force:
            refuse_foreign(path)  # before the model is captured, which takes its time
    target = find_target(model, given, terminal.note)
    with terminal.progress() as progress:
        result = run(
            api.load(target.record) if target.record is not None else target.spec,
            strategy=strategy or (target.config.strategies or (DEFAULT_STRATEGY,))[0],
            options=strategy_options({}, opt or []),
            select=choices.select,
            ignore=choices.ignore,
            min_bytes=choices.min_bytes,
            cache=target.cache,
            progress=progress,
            settings=target.settings,
            target=target.words,
        )
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    _write(result, terminal, chosen_format, output_path, every=every, force=force)
    if write_policy is not None:
        _write_policy(result, terminal, write_policy, force=force)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _list_rules(terminal: Terminal) -> None:
    from aotcli.api.lint import rule_infos
    from aotcli.render.lint_text import render_rules_text

    terminal.result(render_rules_text(rule_infos(), terminal.page))


def _write(
    result: LintResult, terminal: Terminal, format_name: str, path: Path | None, *, every: bool, force: bool
) -> None:
    from aotcli.cli.output import write_output
    from aotcli.render.page import Page

    page = terminal.page if path is None else Page()
    if format_name == "json":
        text = result.json()
    elif format_name == "markdown":
        text = result.markdown()
    elif format_name == "github":
        text = _github(result, page)
    else:
        text = result.text(page, every=every, quiet=terminal.quiet)
    if path is None:
        terminal.result(text)
    else:
        write_output(path, text, format_name, force=force)
        terminal.note(f"wrote {path}")
    if format_name == "github":
        from aotcli.cli.check_output import append_summary

        append_summary(result.markdown(), terminal.note)


def _github(result: LintResult, page: Page) -> str:
    from aotcli.capture.project import project_root
    from aotcli.cli.check_output import locator

    # Records name files from the root of the project.
    return result.github(locator(project_root(Path.cwd())), page)


def _write_policy(result: LintResult, terminal: Terminal, path: Path, *, force: bool) -> None:
    from aotcli.cli.output import write_output

    if result.report.policy is None:
        terminal.note(f"no finding is about a value that could as well be computed again: {path} was not written")
        return
    write_output(path, result.policy(), "text", force=force)
    terminal.note(f"wrote {path}")
