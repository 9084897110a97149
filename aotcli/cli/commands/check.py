"""``aotcli check``: the project's models against their baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.options import OutputOptions, output_options

if TYPE_CHECKING:
    from aotcli.cli.check_output import Outputs
    from aotcli.cli.terminal import Terminal
    from aotcli.ir.check import CheckedModel, CheckRun, ModelCheck


def complete_checked(incomplete: str) -> list[str]:
    """Names of checked models for the shell's completion."""
    from aotcli.cli.check_config import load_check_config
    from aotcli.errors import AotcliError

    try:
        names = load_check_config(Path.cwd()).names
    except AotcliError:
        return []
    return [name for name in names if name.startswith(incomplete)]


@output_options
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Models of tool.aotcli.check.models in pyproject.toml; by default all.",
            autocompletion=complete_checked,
            show_default=False,
        ),
    ] = None,
    strict_env: Annotated[
        bool, typer.Option("--strict-env", help="Enforce `structure` in another environment, too.")
    ] = False,
    cache: Annotated[
        bool | None,
        typer.Option("--cache/--no-cache", help="Use earlier captures (default), or capture anew.", show_default=False),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="text (default), json, markdown, github or junit.", metavar="FORMAT"),
    ] = None,
    output_paths: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            help="A file for the report (.xml is JUnit, .md, .json, .txt), or a folder for new baselines. May be "
            "repeated.",
            metavar="FILE|DIR",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    output: OutputOptions,
) -> None:
    """Hold models against their baselines in .aotcli/, and fail where a limit is broken.

    What is demanded stands in pyproject.toml: tables tool.aotcli.check.models.NAME.

    A plan that differs is written beside its baseline (not under CI=true); `aotcli accept` makes it the baseline.

    Ends with 0, with 1 for a broken limit or a missing baseline, with 2 for bad input.
    """
    from aotcli.api.checking import check_model, find_orphans, heading
    from aotcli.api.judging import Keep
    from aotcli.cli.check_config import load_check_config
    from aotcli.cli.check_output import choose_outputs
    from aotcli.cli.default_model import in_ci
    from aotcli.cli.terminal import open_terminal
    from aotcli.ir.check import CheckRun
    from aotcli.render.check_text import name_width, render_model_text

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    outputs = choose_outputs(format_name, output_paths or [], force=force)
    config = load_check_config(Path.cwd())
    models = [_adjusted(each, strict_env, cache) for each in config.choose(names or [])]
    width = name_width([each.name for each in models])
    keep = Keep(write=not in_ci(), artefacts=outputs.folder)
    found: list[ModelCheck] = []
    for model in models:
        with terminal.progress() as progress:
            head = heading(model, models)
            progress(head)
            found.append(check_model(model, config.store, keep, lambda text, head=head: progress(f"{head}: {text}")))
        # Text comes as it is known, when the spinner has gone: models may take their time.
        if outputs.stdout == "text":
            terminal.result(render_model_text(found[-1], terminal.page, width, quiet=terminal.quiet))
    run = CheckRun(tuple(found), () if names else find_orphans(config.store, config.names))
    _finish(run, terminal, outputs, config.folder, force=force)
    if run.exit_code:
        raise typer.Exit(run.exit_code)


def _adjusted(model: CheckedModel, strict_env: bool, cache: bool | None) -> CheckedModel:
    limits = replace(model.limits, strict_env=strict_env or model.limits.strict_env)
    return replace(model, limits=limits, cache=model.cache if cache is None else cache)


def _finish(run: CheckRun, terminal: Terminal, outputs: Outputs, project: Path, *, force: bool) -> None:
    """Write what is written of all models together, and what goes into files."""
    from aotcli.cli.check_output import ignore_hint, locator, render_run, write_files, write_summary
    from aotcli.cli.default_model import in_ci
    from aotcli.render.check_text import render_run_text

    locate = locator(project)
    if outputs.stdout == "text":
        terminal.result(render_run_text(run, terminal.page, quiet=terminal.quiet))
    else:
        terminal.result(render_run(run, outputs.stdout, terminal.page, locate, quiet=terminal.quiet))
    write_files(run, outputs, locate, force=force)
    for path, _ in outputs.files:
        terminal.note(f"wrote {path}")
    if "github" in (outputs.stdout, *(name for _, name in outputs.files)):
        write_summary(run, terminal.note)
    hint = ignore_hint(project) if any(each.written for each in run.models) and not in_ci() else ""
    if hint:
        terminal.note(f"note: {hint}")
