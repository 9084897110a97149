"""The program: its commands, and how it ends.

Exit codes: 0 ok, 1 findings, 2 usage or input, 3 internal or environment, 130 interrupted. A pipe that closed early is
no error.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from aotcli import __version__
from aotcli.cli import commands
from aotcli.cli.options import INTERRUPTED
from aotcli.cli.usage import PARSE_ERRORS, shows_help, usage_error
from aotcli.errors import AotcliError

INTERNAL = 3

app = typer.Typer(
    name="aotcli",
    help="See, decide and check what a PyTorch training step saves for its backward.",
    epilog="Start with: aotcli partition model.py --strategy mincut",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"aotcli {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


commands.register(app)


def main() -> NoReturn:
    """Run the command line of this process and end it with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line; gives its exit code. Nothing that a user can do wrong shows a traceback, but --debug."""
    debug = "--debug" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        code = app(args=arguments, prog_name="aotcli", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else INTERNAL
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except PARSE_ERRORS as error:
        return _unparsed(error, arguments, debug=debug)
    except AotcliError as error:
        return _fail(error, debug=debug)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is said in words, too
        return _fail(_internal(error), debug=debug)
    return code if isinstance(code, int) else 0


def _unparsed(error: Any, arguments: list[str], *, debug: bool) -> int:
    if shows_help(error):
        error.show()
        return int(error.exit_code)
    return _fail(usage_error(error, arguments), debug=debug)


def _internal(error: Exception) -> AotcliError:
    return AotcliError(
        f"aotcli itself failed: {type(error).__name__}: {error}",
        why="this is a fault in aotcli, not in your model",
        fix="run it again with --debug and report what it prints",
    )


def _fail(error: AotcliError, *, debug: bool) -> int:
    """Say what went wrong; gives the exit code. Called while the exception is handled, for its traceback."""
    from aotcli.cli.terminal import print_error, print_failure

    if debug:
        import traceback

        print_error(traceback.format_exc().rstrip())
    print_failure(error)
    return error.exit_code
