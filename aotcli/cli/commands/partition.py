"""``aotcli partition``: what a step saves for its backward under a strategy, or under several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api import PartitionResult
    from aotcli.cli.terminal import Terminal
    from aotcli.render.saved_table import RowOptions

STRATEGY_PANEL = "Strategy"
ROWS_PANEL = "Rows"
DEFAULT_STRATEGY = "mincut"


def complete_strategy(incomplete: str) -> list[str]:
    """Names of strategies for the shell's completion; imports none of them."""
    from aotcli.strategies import strategy_names

    return [name for name in strategy_names() if name.startswith(incomplete)]


@output_options
@capture_options
def partition(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            help="mincut (default), or another of `aotcli strategies`; name:key=value,... sets options. Repeat it to "
            "compare.",
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
    op_set: Annotated[
        str | None,
        typer.Option("--op-set", help="inductor or nvfuser.", metavar="SET", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    recomputable_ops: Annotated[
        str | None,
        typer.Option("--recomputable-ops", help="Ops that may be recomputed.", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    cse: Annotated[
        bool | None,
        typer.Option("--cse/--no-cse", help="Merge common subexpressions first.", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    aggressive: Annotated[
        bool | None,
        typer.Option(
            "--aggressive/--no-aggressive", help="Recompute all but costly ops.", rich_help_panel=STRATEGY_PANEL
        ),
    ] = None,
    max_distance: Annotated[
        int | None,
        typer.Option("--max-distance", help="How far apart may be recomputed.", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="A size (2GiB), or a fraction in [0, 1].", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="The file of --strategy policy.", metavar="FILE.toml", rich_help_panel=STRATEGY_PANEL
        ),
    ] = None,
    force_match: Annotated[
        bool | None,
        typer.Option(
            "--force-match", help="Replay a plan for another graph, by module path.", rich_help_panel=STRATEGY_PANEL
        ),
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="One row per saved value.", rich_help_panel=ROWS_PANEL)] = False,
    every: Annotated[bool, typer.Option("--all", help="Every row.", rich_help_panel=ROWS_PANEL)] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", help="At most N rows.", metavar="N", min=0, rich_help_panel=ROWS_PANEL)
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", help="bytes (default), order, module or name.", rich_help_panel=ROWS_PANEL),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="text, json or markdown; by default what -o is called.", metavar="FORMAT"),
    ] = None,
    output_path: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to a file; X.aot.json is a plan file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Show what a training step saves for its backward, why, and what it costs.

    MODEL is path.py, path.py:NAME, package.module:NAME, hf:NAME or timm:NAME.

    RECORD is what `trace -o` wrote. Without either, the project's own model.
    """
    from aotcli import api
    from aotcli.cli.output import choose_format, is_plan_file, refuse_foreign
    from aotcli.cli.target import find_target
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, None if is_plan_file(output_path) else output_path)
    rows = _row_options(flat, every, limit, sort)
    flags = {
        "op_set": op_set,
        "recomputable_ops": recomputable_ops,
        "cse": cse,
        "aggressive": aggressive,
        "max_distance": max_distance,
        "budget": budget,
        "policy": policy,
        "force_match": force_match,
    }
    options = strategy_options(flags, opt or [])
    if output_path is not None and not force:
        refuse_foreign(output_path)  # before the model is captured, which takes its time
    target = find_target(model, given, terminal.note)
    names = strategy or (["policy"] if policy else list(target.config.strategies)) or [DEFAULT_STRATEGY]
    with terminal.progress() as progress:
        result = api.partition(
            api.load(target.record) if target.record is not None else target.spec,
            strategy=names,
            options=options,
            alternatives=chosen_format == "text" and not terminal.quiet,
            cache=target.cache,
            progress=progress,
            settings=target.settings,
            target=target.words,
        )
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    _write(result, terminal, rows, chosen_format, output_path, force=force)


def _row_options(flat: bool, every: bool, limit: int | None, sort: str | None) -> RowOptions:
    from aotcli.errors import InputError
    from aotcli.render.saved_table import SORTS, RowOptions

    if sort is not None and sort not in SORTS:
        raise InputError(f"--sort {sort}", why=f"it is one of {', '.join(SORTS)}", fix="--sort bytes is the default")
    if every and limit is not None:
        raise InputError("--all and --limit contradict each other", fix="leave one of them out")
    return RowOptions(flat, every, limit, sort)


def strategy_options(flags: dict[str, object], pairs: list[str]) -> dict[str, object]:
    """Options from their own flags and from `--opt K=V`, which wins."""
    from aotcli.errors import InputError

    options = {name: value for name, value in flags.items() if value is not None}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--opt {text}", why="it takes a name and a value", fix="write --opt aggressive=true")
        options[key.strip().replace("-", "_")] = value
    return options


def _write(
    result: PartitionResult, terminal: Terminal, rows: RowOptions, format_name: str, path: Path | None, *, force: bool
) -> None:
    from aotcli import api
    from aotcli.cli.output import is_plan_file, write_output
    from aotcli.render.page import Page

    if is_plan_file(path):
        assert path is not None
        api.save(result, path, force=force)
        terminal.note(f"wrote {path}")
        path = None
    page = terminal.page if path is None else Page(terminal.page.width)
    if format_name == "json":
        text = result.json()
    elif format_name == "markdown":
        text = result.markdown(rows)
    else:
        text = result.text(page, rows, quiet=terminal.quiet)
    if path is None:
        terminal.result(text)
    else:
        write_output(path, text, format_name, force=force)
        terminal.note(f"wrote {path}")
