"""``aotcli doctor``: what is installed, and how to get what is missing."""

from __future__ import annotations

import typer

from aotcli.cli.options import OutputOptions, output_options

_UNFIT = 3


@output_options
def doctor(*, output: OutputOptions) -> None:
    """Check versions, devices and optional parts, and say how to get what is missing."""
    from aotcli import api
    from aotcli.cli.terminal import open_terminal
    from aotcli.render.doctor_text import render_doctor_text

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    found = api.doctor()
    terminal.result(render_doctor_text(found, terminal.page))
    if not found.ok:
        raise typer.Exit(_UNFIT)
