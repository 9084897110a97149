"""Where a command writes: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import dedent
from typing import TextIO

from aotcli.errors import AotcliError, InputError, OutputError
from aotcli.render.page import DEFAULT_WIDTH, MIN_WIDTH, Page

COLORS = ("auto", "always", "never")
_SIGNS = "×·−→≥…"
_PROGRESS_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Terminal:
    """The page of standard output, and how much to say beside the result."""

    page: Page
    quiet: bool = False
    verbose: bool = False

    def result(self, text: str) -> None:
        """Write a result. Where the reader went away (`| head`), the program ends, silently.

        Raises OutputError where standard output cannot be written for another reason.
        """
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            # Python would try to flush once more at exit, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                raise SystemExit(0) from None
            raise OutputError(
                "standard output cannot be written",
                why=error.strerror or str(error),
                fix="free space, or write elsewhere",
            ) from error

    def note(self, text: str) -> None:
        """Say something that is not the result."""
        if not self.quiet:
            print_error(text)

    @contextmanager
    def progress(self) -> Iterator[Callable[[str], None]]:
        """A function that shows what is being done: a spinner after a second on a terminal, lines with -v, else
        nothing."""
        if self.quiet or (not self.verbose and not sys.stderr.isatty()):
            yield lambda message: None
        elif self.verbose or os.environ.get("TERM") == "dumb":
            yield print_error
        else:
            with _spinner() as show:
                yield show


@contextmanager
def _spinner() -> Iterator[Callable[[str], None]]:
    from threading import Lock, Timer

    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    console = Console(stderr=True)
    status = Status("working", console=console)
    lock = Lock()
    state = {"done": False, "shown": False}

    def start() -> None:
        with lock:
            if not state["done"]:
                state["shown"] = True
                status.start()

    timer = Timer(_PROGRESS_AFTER_S, start)
    timer.daemon = True
    timer.start()
    try:
        # Text, because a name with brackets is no markup.
        yield lambda message: status.update(Text(message))
    finally:
        timer.cancel()
        with lock:
            state["done"] = True
            if state["shown"]:
                status.stop()


def open_terminal(*, color: str = "auto", quiet: bool = False, verbose: bool = False) -> Terminal:
    """The terminal of this process. COLUMNS overrides the width; NO_COLOR and TERM=dumb turn `auto` colour off.

    Raises InputError for an unknown `color`, OutputError where standard output is closed.
    """
    if sys.stdout is None:  # closed by the caller: `>&-`
        raise OutputError("standard output is closed", why="results are written there", fix="leave it open")
    if color not in COLORS:
        raise InputError(f"--color {color}", why=f"it is one of {', '.join(COLORS)}", fix="--color auto is the default")
    return Terminal(Page(_width(), _colored(color), _can_show(sys.stdout, _SIGNS)), quiet, verbose)


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        width = int(columns)
    elif sys.stdout.isatty():
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    else:
        width = DEFAULT_WIDTH
    return max(MIN_WIDTH, width)


def _colored(color: str) -> bool:
    if color != "auto":
        return color == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_error(text: str) -> None:
    """A line on standard error, whatever its encoding can show. A reader that went away is no reason to fail."""
    from aotcli.render.page import to_ascii

    if not _can_show(sys.stderr, text):
        text = to_ascii(text)
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        pass


def print_failure(error: AotcliError) -> None:
    """What happened, why, and what to do. An error that wraps another one (the user's own, mostly) has a traceback
    to offer where it has no better advice."""
    fix = error.fix or ("correct that; --debug shows where it came from" if error.__cause__ is not None else "")
    lines = [f"error: {error.what}"]
    for label, text in (("why", error.why), ("fix", fix)):
        if text:
            first, _, rest = text.partition("\n")
            lines += [f"  {label}: {first}", *(f"       {line}" for line in dedent(rest).splitlines())]
    print_error("\n".join(lines))
