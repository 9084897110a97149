"""``aotcli strategies``: what there is to choose from."""

from __future__ import annotations

from aotcli.cli.options import OutputOptions, output_options


@output_options
def strategies(*, output: OutputOptions) -> None:
    """List the strategies and their options."""
    from aotcli import api
    from aotcli.cli.terminal import open_terminal
    from aotcli.render.strategies_text import render_strategies_text

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    terminal.result(render_strategies_text(api.strategies(), terminal.page))
