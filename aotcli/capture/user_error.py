"""An exception of the user's code in one message: its type, its text, and the line of theirs that it came from."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path

from aotcli.capture.project import is_own_file, relative_to_root

_MOST_CHARACTERS = 600


def root_cause(error: BaseException) -> BaseException:
    """What the user's code raised, where the compiler or aotcli reports it in words of its own."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = error.__cause__
        if inner is None and type(error).__module__.startswith("torch._dynamo"):
            inner = error.__context__
        if inner is not None:
            error = inner
    return error


def describe_error(error: BaseException) -> str:
    """``ValueError: text``, with a long tail left off."""
    text = str(error).strip()
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS].rstrip()} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def user_line(error: BaseException, root: Path) -> str | None:
    """``gpt.py:14: x = y @ z``: the innermost line of the user's own code that an exception passed through."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _line(error.filename, error.lineno, root)
    # Where the compiler ran the code, its own record of the user's stack goes deeper than the traceback.
    stack = getattr(error, "real_stack", None) or traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if _is_users(frame.filename)]
    if not frames:
        return None
    return _line(frames[-1].filename, frames[-1].lineno or 0, root)


def _is_users(filename: str) -> bool:
    return not filename.startswith("<") and is_own_file(Path(filename))


def _line(filename: str, line: int, root: Path) -> str:
    code = linecache.getline(filename, line).strip()
    where = f"{relative_to_root(Path(filename), root)}:{line}"
    return f"{where}: {code}" if code else where


def explain_error(error: BaseException, root: Path) -> str:
    """Both on two lines, for the `why` of an AotcliError."""
    cause = root_cause(error)
    line = user_line(error, root) or user_line(cause, root)
    return f"{describe_error(cause)}\n  at {line}" if line else describe_error(cause)
