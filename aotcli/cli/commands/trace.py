"""``aotcli trace``: capture the joint graph of one training step."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.api import FoundTrace
    from aotcli.cli.target import Target
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
    with_torch: Annotated[
        bool, typer.Option("--with-torch", help="Record what PyTorch's own partitioner saves too, for `aotcli diff`.")
    ] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Capture one training step's joint graph and summarize it.

    MODEL is path.py, path.py:NAME, package.module:NAME, hf:NAME or timm:NAME.

    Without it, the project's own model. After --, your script runs until its first step has been recorded.
    """
    from aotcli import api
    from aotcli.cli.output import refuse_foreign
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    # What can be refused is refused before the model is captured, which takes its time.
    needs_model = check_graph(graph, strategy)
    if output_path is not None and not force:
        refuse_foreign(output_path)
    script: tuple[str, ...] = ctx.meta.get(_SCRIPT, ())
    if script:
        target, found = None, api.FoundTrace(_trace_script(model, script, given, terminal, with_torch))
        words = ["aotcli", "trace", *(["--with-torch"] if with_torch else []), "-o", "step.aot.json"]
        steps = (
            shlex.join([*words, "--", *script]),
            _partition_command("step.aot.json"),
        )
    else:
        target, found = _trace_model(model, given, terminal, with_torch)
        steps = (_partition_command(target.words),)
    if output_path is not None:
        api.save(found.trace, output_path, force=force)
        terminal.note(f"wrote {output_path}")
        steps = (_partition_command(shlex.quote(str(output_path))),)
    if graph is None:
        show_summary(found.trace, terminal, steps, cached=found.cached)
    elif needs_model and target is not None:
        show_code(target.spec, terminal, graph, strategy, settings=target.settings)
    else:
        show_code(found.trace, terminal, graph, strategy)


def _trace_model(
    model: str | None, given: GivenCapture, terminal: Terminal, with_torch: bool
) -> tuple[Target, FoundTrace]:
    from aotcli import api
    from aotcli.cli.target import find_target
    from aotcli.errors import InputError

    target = find_target(model, given, terminal.note)
    if target.record is not None:
        raise InputError(
            f"{target.record} is a record, so it was traced already",
            fix=f"look at it with: aotcli show {target.words}",
        )
    settings = replace(target.settings, with_torch=with_torch)
    with terminal.progress() as progress:
        found = api.find_trace(target.spec, settings, cache=target.cache, progress=progress)
    from aotcli.cli.last_model import remember

    remember(target)
    return target, found


def _trace_script(
    model: str | None, script: tuple[str, ...], given: GivenCapture, terminal: Terminal, with_torch: bool
) -> Trace:
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
        settings = replace(capture_settings(given), with_torch=with_torch)
        return api.trace_script(script, settings=settings, progress=progress)


def check_graph(graph: str | None, strategy: str) -> bool:
    """Whether --graph needs the live model for `strategy`. Raises InputError for a graph or strategy there is not."""
    from aotcli import api
    from aotcli.errors import InputError

    if graph is None:
        return False
    if graph not in api.GRAPHS:
        raise InputError(f"there is no graph {graph!r}", fix=f"choose {', '.join(api.GRAPHS)}")
    return graph != "joint" and api.needs_model(strategy)


def show_code(model: Trace | str, terminal: Terminal, graph: str, strategy: str, **capturing: Any) -> None:
    """Write one of a model's graphs as code, region by region."""
    from aotcli import api
    from aotcli.render.code import render_code

    with terminal.progress() as progress:
        codes = api.graph_code(model, graph, strategy=strategy, progress=progress, **capturing)
    terminal.result("\n".join(render_code(code, terminal.page) for code in codes))


def show_summary(found: Trace, terminal: Terminal, steps: Sequence[str], *, cached: bool = False) -> None:
    """Write the summary of a trace, and the commands that come next."""
    from aotcli.render.trace_text import render_trace_text

    shown = () if terminal.quiet else steps
    text = render_trace_text(found, terminal.page, next_steps=shown, verbose=terminal.verbose, cached=cached)
    terminal.result(text)


def _partition_command(words: str) -> str:
    return " ".join(word for word in ("aotcli partition", words, "--strategy mincut") if word)
