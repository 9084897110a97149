"""``aotcli draw``: a training step as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotcli.cli.commands.partition import DEFAULT_STRATEGY, STRATEGY_PANEL, complete_strategy, strategy_options
from aotcli.cli.options import GivenCapture, OutputOptions, capture_options, output_options

if TYPE_CHECKING:
    from aotcli.analysis.scene_build import SceneOptions
    from aotcli.api.draw import DrawResult
    from aotcli.cli.terminal import Terminal

VIEW_PANEL = "What to show"


@output_options
@capture_options
def draw(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|RECORD", help="A model, a record, or - for one on standard input."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            help="mincut (default), or another of `aotcli strategies`; name:key=value,... sets options.",
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
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Draw what differs from another record or model; @NAME is the same step by another strategy.",
            metavar="B",
            rich_help_panel=STRATEGY_PANEL,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            help="Open modules down to this level; by default as many as give 60 boxes.",
            metavar="N",
            rich_help_panel=VIEW_PANEL,
        ),
    ] = None,
    expand: Annotated[
        list[str] | None,
        typer.Option("--expand", help="Show these modules op by op.", metavar="PATTERN", rich_help_panel=VIEW_PANEL),
    ] = None,
    collapse: Annotated[
        list[str] | None,
        typer.Option(
            "--collapse", help="Show these modules as one box.", metavar="PATTERN", rich_help_panel=VIEW_PANEL
        ),
    ] = None,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="Draw each of equal layers.", rich_help_panel=VIEW_PANEL)
    ] = False,
    focus: Annotated[
        str | None,
        typer.Option(
            "--focus", help="Only a node, module or op, and what is near.", metavar="NAME", rich_help_panel=VIEW_PANEL
        ),
    ] = None,
    radius: Annotated[
        int, typer.Option("--radius", help="How many links count as near.", metavar="K", rich_help_panel=VIEW_PANEL)
    ] = 2,
    only: Annotated[
        str | None,
        typer.Option("--only", help="forward, backward, joint or saved.", metavar="PART", rich_help_panel=VIEW_PANEL),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option("--show", help="Also params, inputs, views.", metavar="WHAT,...", rich_help_panel=VIEW_PANEL),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", help="One region, by name or number.", metavar="NAME", rich_help_panel=VIEW_PANEL),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="aotcli, or dot where Graphviz is installed.", metavar="ENGINE")
    ] = "aotcli",
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="svg, png or dot; by default what -o is called.", metavar="FORMAT"),
    ] = None,
    output_path: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to a file; several regions to one each.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let -o replace a file that aotcli did not write.")] = False,
    *,
    given: GivenCapture,
    output: OutputOptions,
) -> None:
    """Draw a training step: forward down, backward up beside it, what is saved between them.

    On a terminal, writes gpt-mincut.svg or the like and prints its path; piped, writes to standard output.
    """
    from aotcli import api
    from aotcli.api.draw import FORMATS, check_view
    from aotcli.cli.output import choose_format, refuse_foreign
    from aotcli.cli.target import find_target
    from aotcli.cli.terminal import open_terminal

    terminal = open_terminal(color=output.color, quiet=output.quiet, verbose=output.verbose)
    chosen_format = choose_format(format_name, output_path, FORMATS)
    view = _view(depth, expand, collapse, unfold, focus, radius, only, show)
    check_view(view, engine)
    options = strategy_options({}, opt or [])
    if chosen_format == "png":
        from aotcli.render.png import require_png

        require_png()
    if output_path is not None and not force:
        refuse_foreign(output_path)  # before the model is captured, which takes its time
    target = find_target(model, given, terminal.note)
    with terminal.progress() as progress:
        result = api.draw(
            api.load(target.record) if target.record is not None else target.spec,
            strategy=strategy or next(iter(target.config.strategies), DEFAULT_STRATEGY),
            options=options,
            against=against,
            region=region,
            engine=engine,
            view=view,
            cache=target.cache,
            progress=progress,
            settings=target.settings,
        )
    if target.record is None:
        from aotcli.cli.last_model import remember

        remember(target)
    for note in result.notes:
        terminal.note(note)
    _write(result, terminal, chosen_format, output_path, force=force)


def _view(
    depth: int | None,
    expand: list[str] | None,
    collapse: list[str] | None,
    unfold: bool,
    focus: str | None,
    radius: int,
    only: str | None,
    show: str | None,
) -> SceneOptions:
    from aotcli.analysis.scene_build import SceneOptions

    return SceneOptions(
        depth=depth,
        expand=tuple(expand or ()),
        collapse=tuple(collapse or ()),
        fold=not unfold,
        show=frozenset(each.strip() for each in (show or "").split(",") if each.strip()),
        only=only or "",
        focus=focus,
        radius=radius,
    )


def _write(result: DrawResult, terminal: Terminal, format_name: str, path: Path | None, *, force: bool) -> None:
    """To the file, or one file for each region; else to a terminal's folder, else to standard output."""
    import sys

    from aotcli.api.draw import picture_name
    from aotcli.cli.output import refuse_foreign, write_bytes, write_stdout
    from aotcli.errors import InputError

    if path is None and not sys.stdout.isatty():
        first, *others = result.pictures
        if others:
            names = ", ".join(picture.region for picture in result.pictures)
            raise InputError(
                f"{len(others) + 1} pictures do not fit into one stream",
                why=f"there are the regions {names}",
                fix=f"write --region {first.region}, or -o FILE.{format_name} for a file each",
            )
        write_stdout(first.data(format_name))
        return
    paths: list[Path] = []
    for picture in result.pictures:
        if path is None:
            paths.append(Path(picture_name(result, picture, format_name)))
        elif len(result.pictures) == 1:
            paths.append(path)
        else:
            paths.append(path.with_name(f"{path.stem}-{picture.region}{path.suffix}"))
    if not force:
        for each in paths:
            refuse_foreign(each)
    for each, picture in zip(paths, result.pictures, strict=True):
        write_bytes(each, picture.data(format_name), force=force)
        if path is None:
            terminal.result(f"{each}\n")
        else:
            terminal.note(f"wrote {each}")
