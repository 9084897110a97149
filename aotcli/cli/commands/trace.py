"""``aotcli trace``: capture the joint graph of one training step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.cli.terminal import Terminal
    from aotcli.ir.trace import Trace

_SCRIPT = "aotcli.script"
_FOR_SCRIPTS = ("--level", "--with-source", "--anonymize")


class ScriptCommand(TyperCommand):
    """A command that takes another command line after ``--`` and keeps it apart from its own arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_SCRIPT] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


@output_options
@capture_options
def trace(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL | -- python SCRIPT ARGS", help="What to trace.", show_default=False)
    ] = None,
    output_path: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the record (X.aot.json, X.aot.json.gz).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    graph: Annotated[
        str | None, typer.Option("--graph", help="Print joint, forward or backward as code instead.", metavar="WHICH")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="The cut for --graph forward or backward.", metavar="NAME")
    ] = "mincut",
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Capture one training step's joint graph and summarize it.

    MODEL is path.py, path.py:NAME, package.module:NAME, hf:NAME or timm:NAME.

    Without it, the project's own model. After --, your script runs until its first step has been recorded.
    """
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    script: tuple[str, ...] = ctx.meta.get(_SCRIPT, ())
    if script:
        found, words, cached = _trace_script(model, script, given, terminal), "RECORD", False
    else:
        found, words, cached = _trace_model(model, given, terminal)
    if output_path is not None:
        from aotcli import api

        api.save(found, output_path, force=force)
        terminal.note(f"wrote {output_path}")
        words = str(output_path)
    show_trace(found, terminal, graph=graph, strategy=strategy, words=words, cached=cached)


def _trace_model(model: str | None, given: GivenCapture, terminal: Terminal) -> tuple[Trace, str, bool]:
    """The trace, how a command line names it, and whether it is one of an earlier run."""
    from aotcli import api
    from aotcli.cli.target import find_target
    from aotcli.errors import InputError

    target = find_target(model, given, terminal.note)
    if target.record is not None:
        raise InputError(
            f"{target.record} is a record, so it was traced already",
            fix=f"look at it with: aotcli show {target.words}",
        )
    with terminal.progress() as progress:
        found = api.find_trace(target.spec, target.settings, cache=target.cache, progress=progress)
    from aotcli.cli.last_model import remember

    remember(target)
    return found.trace, target.words, found.cached


def _trace_script(model: str | None, script: tuple[str, ...], given: GivenCapture, terminal: Terminal) -> Trace:
    from aotcli import api
    from aotcli.cli.target import capture_settings, given_words
    from aotcli.errors import InputError

    ignored = [word for word in given_words(given) if word.startswith("--") and word not in _FOR_SCRIPTS]
    if ignored:
        raise InputError(
            f"{ignored[0]} does not go with a script",
            why="a script makes its own model and inputs and runs them as it is",
            fix=f"leave it out, or change the script; {', '.join(_FOR_SCRIPTS)} do go with one",
        )
    if model is not None:
        raise InputError(
            f"both a model ({model}) and a script were given",
            why="what stands after -- is run as it is, and brings its own model",
            fix=f"leave {model} out, or leave the script out",
        )
    with terminal.progress() as progress:
        return api.trace_script(script, settings=capture_settings(given), progress=progress)


def show_trace(
    found: Trace, terminal: Terminal, *, graph: str | None, strategy: str, words: str, cached: bool = False
) -> None:
    """Write the summary of a trace, or one of its graphs as code."""
    if graph is not None:
        from aotcli import api
        from aotcli.render.code import render_code

        codes = api.graph_code(found, graph, strategy=strategy)
        terminal.result("\n".join(render_code(code, terminal.page) for code in codes))
        return
    from aotcli.render.trace_text import render_trace_text

    steps = () if terminal.quiet else (f"aotcli partition {words} --strategy mincut".replace("  ", " "),)
    text = render_trace_text(found, terminal.page, next_steps=steps, verbose=terminal.verbose, cached=cached)
    terminal.result(text)
