"""``aotcli pareto``: every plan worth having between saving all and recomputing all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

FORMATS = ("text", "json", "markdown", "svg")
COST_PANEL = "Costs"


@output_options
@capture_options
def pareto(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option("--cost", help="roofline (default) or flops.", rich_help_panel=COST_PANEL)
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option(
            "--hardware",
            help="For roofline: cpu, a100, h100, h200 or FILE.toml; by default as traced.",
            metavar="NAME",
            rich_help_panel=COST_PANEL,
        ),
    ] = None,
    fused: Annotated[
        bool | None,
        typer.Option(
            "--fused/--unfused",
            help="For roofline: charge pointwise chains once; by default at level inductor.",
            rich_help_panel=COST_PANEL,
        ),
    ] = None,
    between: Annotated[
        int, typer.Option("--between", help="Look for N plans between the corners, too.", metavar="N", min=0, max=64)
    ] = 0,
    with_torch: Annotated[
        bool, typer.Option("--with-torch", help="With PyTorch's own budgets, 0.9 to 0.1 (captures the model).")
    ] = False,
    region: Annotated[
        int | None, typer.Option("--region", help="Which region; by default the one that saves most.", metavar="N")
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="text, json, markdown or svg; by default what -o is called.", metavar="FORMAT"
        ),
    ] = None,
    output_path: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Show the whole front of saved bytes against recomputing, with each plan's peak and the command that takes it.

    MODEL and RECORD are what `partition` takes. Corners are proven: no plan is cheaper for its bytes.
    """
    from aotcli import api
    from aotcli.api.pareto import pareto as run
    from aotcli.cli.output import choose_format, refuse_foreign, write_bytes, write_output
    from aotcli.cli.target import find_target
    from aotcli.cli.terminal import open_terminal
    from aotcli.render.page import Page

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path, FORMATS)
    if output_path is not None and not force:
        refuse_foreign(output_path)
    target = find_target(model, given, terminal.note)
    options = {"cost": cost, "hardware": hardware, "fused": fused}
    with terminal.progress() as progress:
        result = run(
            api.load(target.record) if target.record is not None else target.spec,
            options={name: value for name, value in options.items() if value is not None},
            region=region,
            between=between,
            with_torch=with_torch,
            cache=target.cache,
            progress=progress,
            settings=target.settings,
            target=target.words,
        )
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    page = terminal.page if output_path is None else Page(terminal.page.width)
    views = {"json": result.json, "markdown": result.markdown, "svg": result.svg}
    text = views[chosen_format]() if chosen_format in views else result.text(page, quiet=terminal.quiet)
    if output_path is None:
        terminal.result(text)
    else:
        if chosen_format == "svg":
            write_bytes(output_path, text.encode("utf-8"), force=force)
        else:
            write_output(output_path, text, chosen_format, force=force)
        terminal.note(f"wrote {output_path}")
