"""``aotcli explain``: why a value is saved or recomputed, and what would change that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import DEFAULT_STRATEGY, STRATEGY_PANEL, complete_strategy, strategy_options
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api.explain import ExplanationResult
    from aotcli.cli.target import Target
    from aotcli.cli.terminal import Terminal

WISH_PANEL = "Wishes"


@output_options
@capture_options
def explain(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|PATTERN",
            help="A node or parameter, modules (h.0, 'h.*.attn'), their ops ('h.*.gelu'), ops, a line (gpt.py:29).",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", help="At most the N largest; default 5.", metavar="N", min=1)
    ] = None,
    save: Annotated[
        list[str] | None,
        typer.Option(
            "--save", help="Plan as if these values had to be saved.", metavar="PATTERN", rich_help_panel=WISH_PANEL
        ),
    ] = None,
    recompute: Annotated[
        list[str] | None,
        typer.Option(
            "--recompute", help="Plan as if these were not to be saved.", metavar="PATTERN", rich_help_panel=WISH_PANEL
        ),
    ] = None,
    write_policy: Annotated[
        Path | None,
        typer.Option(
            "--write-policy",
            help="Write the wishes, or else what would turn the decisions round: a policy file (.toml), or selective "
            "checkpointing (.py).",
            metavar="FILE",
            rich_help_panel=WISH_PANEL,
        ),
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
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="The file of --strategy policy.", metavar="FILE.toml", rich_help_panel=STRATEGY_PANEL
        ),
    ] = None,
    opt: Annotated[
        list[str] | None,
        typer.Option("--opt", help="Any option of the strategy.", metavar="K=V", rich_help_panel=STRATEGY_PANEL),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="text, json or markdown; by default what -o is called.", metavar="FORMAT"),
    ] = None,
    output_path: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Say why a value is saved or recomputed: its line, its readers, the rule, the cost, what would turn it round.

    MODEL and RECORD are what `partition` takes. Without NAME or PATTERN, the largest saved values.
    """
    from aotcli import api
    from aotcli.api.explain import DEFAULT_TOP
    from aotcli.api.explain import explain as run
    from aotcli.cli.output import choose_format, refuse_foreign
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path)
    _check_policy_path(write_policy)
    for path in (output_path, write_policy):
        if path is not None and not force:
            refuse_foreign(path)
    target, pattern = _target(model, pattern, given, terminal)
    with terminal.progress() as progress:
        result = run(
            api.load(target.record) if target.record is not None else target.spec,
            pattern,
            top=top or DEFAULT_TOP,
            save=save or (),
            recompute=recompute or (),
            strategy=strategy or ("policy" if policy else next(iter(target.config.strategies), DEFAULT_STRATEGY)),
            options=strategy_options({"policy": policy}, opt or []),
            cache=target.cache,
            progress=progress,
            settings=target.settings,
            target=target.words,
        )
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    if write_policy is not None:
        _write_policy(result, write_policy, terminal, force=force)
    _write(result, terminal, chosen_format, output_path, force=force)


def _target(
    model: str | None, pattern: str | None, given: GivenCapture, terminal: Terminal
) -> tuple[Target, str | None]:
    """What is explained, and what of it. A single word that is no model's is a pattern for the project's own model."""
    from aotcli.cli.target import find_target

    if model is not None and pattern is None and not _means_model(model):
        model, pattern = None, model
    return find_target(model, given, terminal.note), pattern


def _means_model(word: str) -> bool:
    """Whether a word is a model or a record: by its form, as a file, or by its name in the configuration."""
    from aotcli.analysis.patterns import is_line
    from aotcli.cli.config import load_config
    from aotcli.cli.target import is_record

    if is_record(word) or word.endswith(".py") or word in load_config(Path.cwd()).models:
        return True
    return (":" in word and not is_line(word)) or Path(word).is_file()


def _check_policy_path(path: Path | None) -> None:
    from aotcli.errors import InputError

    if path is not None and path.suffix not in (".toml", ".py"):
        raise InputError(
            f"--write-policy {path}: the name does not say what to write",
            why="a policy file for --strategy policy is called .toml, a selective checkpoint in Python .py",
            fix=f"--write-policy {path.with_suffix('.toml')}",
        )


def _write_policy(result: ExplanationResult, path: Path, terminal: Terminal, *, force: bool) -> None:
    from aotcli.cli.output import write_output

    text = result.checkpoint_python() if path.suffix == ".py" else result.policy_text()
    write_output(path, text, "text", force=force)
    terminal.note(f"wrote {path}")


def _write(result: ExplanationResult, terminal: Terminal, format_name: str, path: Path | None, *, force: bool) -> None:
    from aotcli.cli.output import write_output
    from aotcli.render.page import Page

    if format_name == "json":
        text = result.json()
    elif format_name == "markdown":
        text = result.markdown()
    else:
        page = terminal.page if path is None else Page(terminal.page.width)
        text = result.text(page, quiet=terminal.quiet)
    if path is None:
        terminal.result(text)
    else:
        write_output(path, text, format_name, force=force)
        terminal.note(f"wrote {path}")
