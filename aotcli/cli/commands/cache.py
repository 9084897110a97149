"""``aotcli cache``: captures of earlier runs."""

from __future__ import annotations

import typer

from aotcli.cli.options import OutputOptions, output_options

cache_app = typer.Typer(name="cache", help="Look at, or clear, the captures of earlier runs.", no_args_is_help=True)


@cache_app.command()
@output_options
def info(*, output: OutputOptions) -> None:
    """Say where captures are kept, how many there are and how large."""
    from aotcli.capture import cache
    from aotcli.cli.terminal import open_terminal
    from aotcli.render.units import bytes_text, plural

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    entries, nbytes = cache.cache_size()
    terminal.result(f"{cache.cache_folder()}: {plural(entries, 'capture')}, {bytes_text(nbytes)}\n")


@cache_app.command()
@output_options
def clear(*, output: OutputOptions) -> None:
    """Delete every cached capture."""
    from aotcli.capture import cache
    from aotcli.cli.terminal import open_terminal
    from aotcli.render.units import bytes_text, plural

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    entries, nbytes = cache.clear_cache()
    terminal.result(f"deleted {plural(entries, 'capture')}, {bytes_text(nbytes)}\n")
