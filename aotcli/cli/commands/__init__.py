"""One file for each command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotcli.cli.commands.accept import accept
from aotcli.cli.commands.cache import cache_app
from aotcli.cli.commands.check import check
from aotcli.cli.commands.diff import diff
from aotcli.cli.commands.doctor import doctor
from aotcli.cli.commands.draw import draw
from aotcli.cli.commands.explain import explain
from aotcli.cli.commands.lint import lint
from aotcli.cli.commands.pareto import pareto
from aotcli.cli.commands.partition import partition
from aotcli.cli.commands.report import report
from aotcli.cli.commands.show import show
from aotcli.cli.commands.strategies import strategies
from aotcli.cli.commands.trace import ScriptCommand, trace
from aotcli.cli.commands.validate import validate

if TYPE_CHECKING:
    import typer

LOOK = "Look"
DECIDE = "Decide"
PROVE = "Prove"
CI = "CI"
SETUP = "Set up"


def register(app: typer.Typer) -> None:
    """Add every command to `app`."""
    app.command(rich_help_panel=LOOK, cls=ScriptCommand)(trace)
    app.command(rich_help_panel=LOOK)(show)
    app.command(rich_help_panel=LOOK)(report)
    app.command(rich_help_panel=LOOK)(draw)
    app.command(rich_help_panel=DECIDE)(partition)
    app.command(rich_help_panel=DECIDE)(pareto)
    app.command(rich_help_panel=DECIDE)(explain)
    app.command(rich_help_panel=DECIDE)(lint)
    app.command(rich_help_panel=DECIDE)(strategies)
    app.command(rich_help_panel=PROVE)(validate)
    app.command(rich_help_panel=PROVE)(diff)
    app.command(rich_help_panel=CI)(check)
    app.command(rich_help_panel=CI)(accept)
    app.command(rich_help_panel=SETUP)(doctor)
    app.add_typer(cache_app, rich_help_panel=SETUP)
