"""``aotcli validate``: the compiled step, run beside eager and compared with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import DEFAULT_STRATEGY, STRATEGY_PANEL, complete_strategy
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.cli.target import Target

RUN_PANEL = "Run"


@output_options
@capture_options
def validate(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A model; records cannot be run.")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            help="mincut (default), or another of `aotcli strategies`; name:key=value,... sets options. Repeat it to "
            "validate several.",
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
    budget: Annotated[
        str | None, typer.Option("--budget", help="A fraction in [0, 1].", rich_help_panel=STRATEGY_PANEL)
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="The file of --strategy policy.", metavar="FILE.toml", rich_help_panel=STRATEGY_PANEL
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", help="aot_eager or inductor.", metavar="NAME", rich_help_panel=RUN_PANEL)
    ] = "aot_eager",
    steps: Annotated[
        int,
        typer.Option(
            "--steps", help="Optimizer steps to compare weights after.", metavar="N", rich_help_panel=RUN_PANEL
        ),
    ] = 3,
    rng: Annotated[
        str, typer.Option("--rng", help="eager, or graphsafe (CUDA).", metavar="KIND", rich_help_panel=RUN_PANEL)
    ] = "eager",
    max_slowdown: Annotated[
        float | None,
        typer.Option(
            "--max-slowdown",
            help="Fail above X times the step under torch-mincut.",
            metavar="X",
            rich_help_panel=RUN_PANEL,
        ),
    ] = None,
    timing: Annotated[
        bool, typer.Option("--time/--no-time", help="Measure step times.", rich_help_panel=RUN_PANEL)
    ] = True,
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
    """Run the compiled step and compare it with eager.

    Builds the real model and checks outputs, gradients, buffers, random state, trained weights, what is saved, the
    graph, peak memory and time.

    Ends with 0, with 1 where a check fails, and with 3 where nothing could be checked.
    """
    from aotcli.api.validation import validate as run
    from aotcli.cli.commands.partition import strategy_options
    from aotcli.cli.output import choose_format
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path)
    options = strategy_options({"budget": budget, "policy": policy}, opt or [])
    target = _target(model, given, backend, terminal.note)
    with terminal.progress() as progress:
        result = run(
            target.spec,
            strategy=strategy or (["policy"] if policy else list(target.config.strategies)) or [DEFAULT_STRATEGY],
            options=options,
            backend=backend,
            steps=steps,
            rng=rng,
            max_slowdown=max_slowdown,
            timing=timing,
            settings=target.settings,
            progress=progress,
        )
    render = {"json": result.json, "markdown": result.markdown}.get(chosen_format)
    if output_path is None:
        terminal.result(render() if render else result.text(terminal.page))
    else:
        from aotcli.cli.output import write_output
        from aotcli.render.page import Page

        write_output(output_path, render() if render else result.text(Page()), chosen_format, force=force)
        terminal.note(f"wrote {output_path}")
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _target(model: str | None, given: GivenCapture, backend: str, note: Callable[[str], None]) -> Target:
    """The model to run. Raises InputError for a record, and for a level that is not the backend's."""
    from aotcli.cli.target import find_target
    from aotcli.errors import InputError

    level = "inductor" if backend == "inductor" else "aten"
    if given.level is not None and given.level != level:
        other = "inductor" if given.level == "inductor" else "aot_eager"
        raise InputError(
            f"--level {given.level} does not go with --backend {backend}",
            why=f"the backend {backend} plans at level {level}",
            fix=f"leave --level out, or use --backend {other}",
        )
    target = find_target(model, given, note)
    if target.record is not None:
        raise InputError(
            f"{target.record} is a record, and nothing can be run from it",
            why="a record holds the graph, and neither weights nor code",
            fix="aotcli validate MODEL, with the model that it was traced from",
        )
    return target
