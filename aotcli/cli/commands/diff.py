"""``aotcli diff``: what differs between two training steps, in what they save and in their graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import ROWS_PANEL, STRATEGY_PANEL, complete_strategy
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api.diff import DiffResult, FolderDiff
    from aotcli.api.diff_sides import Source
    from aotcli.cli.terminal import Terminal
    from aotcli.ir.trace import Trace
    from aotcli.render.diff_rows import DiffRows

FORMATS = ("text", "json", "markdown", "github")
_DIFFERENT = 1


@output_options
@capture_options
def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A record, plan file, model or folder of records.")],
    right: Annotated[str, typer.Argument(metavar="B", help="What to compare it with; @NAME plans by a strategy.")],
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="Plans both sides, where they name none themselves; mincut by default.",
            metavar="NAME",
            rich_help_panel=STRATEGY_PANEL,
            autocompletion=complete_strategy,
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="saved or graph.", metavar="PART", rich_help_panel=ROWS_PANEL)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every row.", rich_help_panel=ROWS_PANEL)] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", help="At most N rows.", metavar="N", min=0, rich_help_panel=ROWS_PANEL)
    ] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 where there is a difference.")] = False,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="text, json, markdown or github; by default what -o is called.",
            metavar="FORMAT",
        ),
    ] = None,
    output_path: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Compare two training steps: saved bytes first, then what the graph did.

    A and B: records (X.aot.json), plan files, models, or two folders of records.

    X@STRATEGY plans a side by itself: gpt.aot.json@recompute-all. X.aot.json@torch is what PyTorch decided, where
    `trace --with-torch` recorded it.
    """
    from aotcli.cli.output import choose_format, refuse_foreign
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path, FORMATS)
    rows = _rows(only, every, limit)
    if output_path is not None and not force:
        refuse_foreign(output_path)  # before a model is captured, which takes its time
    result = _compare(left, right, strategy, given, terminal)
    _write(result, terminal, rows, chosen_format, output_path, force=force)
    if exit_code and result.differs(only):
        raise typer.Exit(_DIFFERENT)


def _rows(only: str | None, every: bool, limit: int | None) -> DiffRows:
    from aotcli.errors import InputError
    from aotcli.render.diff_rows import ONLY, DiffRows

    if only is not None and only not in ONLY:
        raise InputError(f"--only {only}", why=f"it is one of {', '.join(ONLY)}", fix=f"--only {ONLY[0]}")
    if every and limit is not None:
        raise InputError("--all and --limit contradict each other", fix="leave one of them out")
    return DiffRows(only, every, limit)


def _compare(
    left: str, right: str, strategy: str | None, given: GivenCapture, terminal: Terminal
) -> DiffResult | FolderDiff:
    from aotcli.api.diff import diff_folders, diff_sources
    from aotcli.api.diff_sides import split_reference
    from aotcli.errors import InputError
    from aotcli.ir.files import STDIN

    (mine, own), (other, others) = split_reference(left), split_reference(right)
    folders = Path(mine).is_dir(), Path(other).is_dir()
    if folders == (True, True):
        return diff_folders(mine, other, strategies=(own, others), strategy=strategy)
    if any(folders):
        folder, file = (mine, other) if folders[0] else (other, mine)
        raise InputError(
            f"{folder} is a folder, and {file} is none",
            why="folders are compared record by record, by name",
            fix=f"give two folders, or a record in {folder}",
        )
    if mine == other == STDIN:
        raise InputError("standard input holds one record", fix="give a file for the other side")
    with terminal.progress() as progress:
        sources = _sources((mine, own), (other, others), given, terminal)
        return diff_sources(*sources, strategy=strategy, progress=progress)


def _sources(
    left: tuple[str, str | None], right: tuple[str, str | None], given: GivenCapture, terminal: Terminal
) -> tuple[Source, Source]:
    """Both sides; records are read first, because a model that is held against one is captured as that was."""
    from aotcli.api.diff_sides import is_record_name, read_source
    from aotcli.cli.target import given_words
    from aotcli.errors import InputError
    from aotcli.ir.trace import Trace

    read = {path: read_source(path, strategy) for path, strategy in (left, right) if is_record_name(path)}
    if len({left[0], right[0]}) == len(read) and given_words(given):
        word = given_words(given)[0]
        raise InputError(
            f"{word} does not go with records",
            why="they hold finished captures; how they were made cannot be changed any more",
            fix="leave it out, or give a model for one side",
        )
    traces = [source.content for source in read.values() if isinstance(source.content, Trace)]
    like = _given_like(traces[0]) if traces else GivenCapture()
    sources: list[Source] = []
    for path, strategy in (left, right):
        source = _again(read, path, strategy) or _model(path, strategy, given.over(like), terminal)
        sources.append(source)
    return sources[0], sources[1]


def _again(read: dict[str, Source], path: str, strategy: str | None) -> Source | None:
    """The source of a path that was read, with this side's strategy: both sides may be one file."""
    from dataclasses import replace

    return replace(read[path], strategy=strategy) if path in read else None


def _given_like(record: Trace) -> GivenCapture:
    """The options with which a record was captured."""
    settings = record.settings
    if settings.anonymize:
        return GivenCapture()
    return GivenCapture(
        inputs=settings.inputs,
        overrides=tuple(f"{key}={value}" for key, value in settings.overrides),
        device=settings.device,
        dtype=settings.dtype,
        autocast=settings.autocast,
        level=settings.level,
        dynamic=settings.dynamic,
        tensors=settings.tensors,
        seed=settings.seed,
        train=settings.train,
        loss=settings.loss,
    )


def _model(path: str, strategy: str | None, given: GivenCapture, terminal: Terminal) -> Source:
    from aotcli.api.diff_sides import Source
    from aotcli.cli.target import find_target, given_words

    words = " ".join(given_words(given))
    if terminal.verbose and words:
        terminal.note(f"{path} is captured with {words}")
    target = find_target(path, given, terminal.note)
    return Source(path, strategy, spec=target.spec, settings=target.settings, cache=target.cache)


def _write(
    result: DiffResult | FolderDiff,
    terminal: Terminal,
    rows: DiffRows,
    format_name: str,
    path: Path | None,
    *,
    force: bool,
) -> None:
    from aotcli.cli.output import write_output
    from aotcli.render.page import Page

    if format_name == "json":
        text = result.json()
    elif format_name == "markdown":
        text = result.markdown(rows)
    elif format_name == "github":
        text = result.github(rows)
    else:
        page = terminal.page if path is None else Page(terminal.page.width)
        text = result.text(page, rows, quiet=terminal.quiet)
    if path is None:
        terminal.result(text)
    else:
        write_output(path, text, format_name, force=force)
        terminal.note(f"wrote {path}")
