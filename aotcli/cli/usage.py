"""Command lines that cannot be parsed, in the words of every other error: what, why and fix.

Typer parses with a library that it brings along in newer versions and depends on in older ones; its exceptions are told
apart by their class's name and by what they hold.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer

from aotcli.errors import InputError

PARSE_ERRORS: tuple[type[BaseException], ...] = tuple(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)
"""What the parser raises; `typer.BadParameter` is one of them."""

_EXTRA = re.compile(r"unexpected extra arguments?(?:\(s\))? \((.*)\)")
_COMMAND = re.compile(r"No such command ['\"](.*?)['\"]")
_REPEATED = ("--set", "--opt", "--input")
"""Options that take one value each time they are given."""


def shows_help(error: BaseException) -> bool:
    """Whether the parser only asks for the help text to be shown: no arguments were given."""
    return type(error).__name__ == "NoArgsIsHelpError"


def usage_error(error: Any, arguments: Sequence[str]) -> InputError:
    """What is wrong with a command line, and how to write it."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else " ".join(["aotcli", *_command(arguments)])
    message = str(error.format_message()).strip()
    help_hint = f"{path} --help shows what it takes"
    usage = _usage(context)
    extra, command = _EXTRA.search(message), _COMMAND.search(message)
    if extra is not None:
        return _extra_words(extra[1], path, arguments, usage, help_hint)
    if command is not None:
        known = context.command.list_commands(context) if context is not None else []
        return InputError(
            f"there is no command {command[1]!r}",
            why=f"known are {', '.join(known)}",
            fix=_nearest(command[1], known) or f"{path} --help lists them",
        )
    if type(error).__name__ == "NoSuchOption":
        near = get_close_matches(error.option_name, _options(context), n=1, cutoff=0.7)
        fix = f"did you mean {near[0]}?" if near else help_hint
        return InputError(f"{path} has no option {error.option_name}", why=usage, fix=fix)
    what, _, why = message.partition(": ")
    return InputError(
        f"{path}: {_lowered(what).rstrip('.')}", why=_lowered(why) or usage or "the line ends there", fix=help_hint
    )


def _extra_words(words: str, path: str, arguments: Sequence[str], usage: str, help_hint: str) -> InputError:
    """An argument too many: mostly a second value after an option that takes one each time."""
    given = list(arguments)
    at = next((i for i in range(len(given)) if " ".join(given[i:]).startswith(words)), len(given))
    extra = next((given[at:end] for end in range(at, len(given) + 1) if " ".join(given[at:end]) == words), [words])
    option = next((word for word in reversed(given[:at]) if word.startswith("-")), "")
    if option in _REPEATED:
        return InputError(
            f"{path}: {words} {'stands' if len(extra) == 1 else 'stand'} alone",
            why=f"{option} takes one value; what follows it is taken for an argument",
            fix="repeat it: " + " ".join(f"{option} {shlex.quote(word)}" for word in extra),
        )
    return InputError(f"{path}: {words} {'is' if len(extra) == 1 else 'are'} too many", why=usage, fix=help_hint)


def _usage(context: Any) -> str:
    return _lowered(" ".join(context.get_usage().split())) if context is not None else ""


def _command(arguments: Sequence[str]) -> list[str]:
    return [word for word in arguments[:1] if not word.startswith("-")]


def _options(context: Any) -> list[str]:
    if context is None:
        return []
    return [name for each in context.command.params for name in (*each.opts, *each.secondary_opts) if "--" in name]


def _nearest(text: str, known: Sequence[str]) -> str:
    near = get_close_matches(text, known, n=1)
    return f"did you mean {near[0]}?" if near else ""


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
