"""``aotcli report``: a planned step as one HTML file to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import DEFAULT_STRATEGY, STRATEGY_PANEL, complete_strategy, strategy_options
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api.reporting import ReportResult
    from aotcli.cli.target import Target
    from aotcli.cli.terminal import Terminal

FORMATS = ("html", "json")


@output_options
@capture_options
def report(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="mincut (default), or another of `aotcli strategies`; name:key=value,... sets options.",
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
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="A record, plan file or model to compare with; X@NAME plans it by a strategy.",
            metavar="X",
        ),
    ] = None,
    front: Annotated[bool, typer.Option("--front/--no-front", help="Compute the trade-off curve.")] = True,
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="html, or json for the data behind it.", metavar="FORMAT"),
    ] = None,
    output_path: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to a file; by default MODEL-STRATEGY.html.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Write a step and its plan as one HTML file: graph, saved values, memory, modules, trade-off.

    The file loads nothing from elsewhere. Source text is in it only with --with-source.

    Without -o, the name is made from model and strategy; into a pipe, the file goes to standard output.
    """
    from aotcli.cli.output import choose_format, refuse_foreign
    from aotcli.cli.target import find_target
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path, FORMATS)
    options = strategy_options({}, opt or [])
    if output_path is not None and not force:
        refuse_foreign(output_path)  # before the model is captured, which takes its time
    given, with_source = _source_text(model, given)
    target = find_target(model, given, terminal.note)
    name = strategy or next(iter(target.config.strategies), DEFAULT_STRATEGY)
    result = _make(target, terminal, name, options, against, front=front, with_source=with_source)
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    if with_source and not any(node.code for graph in result.report.trace.regions for node in graph.nodes):
        terminal.note("no source text: the record holds none; trace the model again with --with-source")
    _write(result, terminal, chosen_format, output_path, force=force)


def _source_text(model: str | None, given: GivenCapture) -> tuple[GivenCapture, bool]:
    """Whether source text is wanted. Of a record, the text that it holds can be shown, though it cannot be captured
    otherwise any more."""
    import dataclasses

    from aotcli.cli.target import is_record

    wanted = given.with_source is True
    if model is not None and is_record(model):
        given = dataclasses.replace(given, with_source=None)
    return given, wanted


def _make(
    target: Target,
    terminal: Terminal,
    strategy: str,
    options: dict[str, object],
    against: str | None,
    *,
    front: bool,
    with_source: bool,
) -> ReportResult:
    from aotcli import api

    with terminal.progress() as progress:
        return api.report(
            api.load(target.record) if target.record is not None else target.spec,
            strategy=strategy,
            options=options,
            against=against,
            front=front,
            with_source=with_source,
            cache=target.cache,
            progress=progress,
            settings=target.settings,
            command=_command(target, strategy, options, against, with_source=with_source),
        )


def _command(
    target: Target, strategy: str, options: dict[str, object], against: str | None, *, with_source: bool
) -> str:
    """The command line that makes the report again. Reports are handed on, so it holds no absolute path."""
    import shlex

    words = ["aotcli", "report", *(_without_folders(word) for word in shlex.split(target.words))]
    words += ["--strategy", strategy]
    for key, value in options.items():
        words += ["--opt", f"{key}={value}"]
    if against is not None:
        words += ["--against", _without_folders(against)]
    if with_source and "--with-source" not in words:
        words.append("--with-source")
    return shlex.join(words)


def _without_folders(word: str) -> str:
    return Path(word).name if Path(word).is_absolute() else word


def _write(result: ReportResult, terminal: Terminal, format_name: str, path: Path | None, *, force: bool) -> None:
    import sys

    from aotcli.cli.output import write_output

    text = result.json() if format_name == "json" else result.html()
    if path is None and (format_name == "json" or not sys.stdout.isatty()):
        terminal.result(text)
        return
    path = path or Path(result.file_name)
    write_output(path, text, format_name, force=force)
    terminal.note(f"wrote {path}")
