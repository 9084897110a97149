"""``aotcli show``: look into a record."""

from __future__ import annotations

from typing import Annotated

import typer

from aotcli.cli.options import OutputOptions, output_options


@output_options
def show(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="What `trace -o` wrote; - is standard input.")],
    graph: Annotated[
        str | None, typer.Option("--graph", help="Print joint, forward or backward as code instead.", metavar="WHICH")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="The cut for --graph forward or backward.", metavar="NAME")
    ] = "mincut",
    *,
    output: OutputOptions,
) -> None:
    """Show what a record holds. Needs no torch."""
    import shlex

    from aotcli import api
    from aotcli.cli.commands.trace import check_graph, show_code, show_summary
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    check_graph(graph, strategy)
    found = api.load(record)
    if graph is None:
        show_summary(found, terminal, (f"aotcli partition {shlex.quote(record)} --strategy mincut",))
    else:
        show_code(found, terminal, graph, strategy)
