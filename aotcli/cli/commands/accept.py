"""``aotcli accept``: what check found becomes the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aotcli.cli.options import OutputOptions, output_options


def complete_waiting(incomplete: str) -> list[str]:
    """Names that wait to be accepted, for the shell's completion."""
    from aotcli.cli.store import find_store
    from aotcli.errors import AotcliError

    try:
        waiting = find_store(Path.cwd()).new_names()
    except AotcliError:
        return []
    return [name for name in waiting if name.startswith(incomplete)]


@output_options
def accept(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="What to accept: a model of `aotcli check`, or a baseline of a test.",
            autocompletion=complete_waiting,
            show_default=False,
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Why it may change; stands in the baseline.", metavar="TEXT")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Accept all that waits.")] = False,
    *,
    output: OutputOptions,
) -> None:
    """Make what `aotcli check` (or a test) found the baseline: .aotcli/NAME.new.aot.json becomes NAME.aot.json.

    A first baseline needs no reason, a change of one does.
    """
    from aotcli.api.checking import accept as accept_baselines
    from aotcli.cli.store import find_store
    from aotcli.cli.terminal import open_terminal
    from aotcli.errors import InputError
    from aotcli.render.check_text import render_accepted_text

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    store = find_store(Path.cwd())
    if every and names:
        raise InputError("--all and names contradict each other", fix="leave one of them out")
    chosen = list(store.new_names()) if every else list(dict.fromkeys(names or []))
    if not chosen:
        waiting = ", ".join(store.new_names())
        raise InputError(
            "nothing waits to be accepted" if every or not waiting else "no NAME was given",
            why=f"waiting are {waiting}" if waiting else f"there is no {store.new_path('NAME').name} in {store.folder}",
            fix="name one, or accept them with --all" if waiting else "check first: aotcli check",
        )
    accepted = accept_baselines(store, chosen, reason)
    terminal.result(render_accepted_text(accepted, terminal.page))
