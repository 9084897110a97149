"""What a command works on: a record, a named model, or, where none is named, the project's own."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aotcli.cli.config import Config, load_config
from aotcli.cli.options import GivenCapture
from aotcli.errors import InputError
from aotcli.ir.trace import CaptureSettings

LEVELS = ("inductor", "aten")
TENSORS = ("auto", "fake", "real")
STDIN = "-"
_RECORD_SUFFIXES = (".json", ".json.gz")

# Option as typed, field of GivenCapture, and what it looks like where a flag stands for false.
_FLAGS = (
    ("--device", "device", None),
    ("--dtype", "dtype", None),
    ("--autocast", "autocast", None),
    ("--level", "level", None),
    ("--dynamic", "dynamic", "--no-dynamic"),
    ("--tensors", "tensors", None),
    ("--seed", "seed", None),
    ("--train", "train", "--eval"),
    ("--loss", "loss", "--no-loss"),
    ("--with-source", "with_source", None),
    ("--anonymize", "anonymize", None),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A model to trace, or a record to read (`record` is its path, or "-"). `words` name it on a command line."""

    spec: str
    record: str | None
    settings: CaptureSettings
    cache: bool
    words: str
    config: Config
    given: GivenCapture


def find_target(model: str | None, given: GivenCapture, note: Callable[[str], None]) -> Target:
    """The target of a command. `note` is told which model was chosen where none was named.

    Raises InputError where there is none to choose, where an option does not parse, or where capture options are
    given for a record.
    """
    config = load_config(Path.cwd())
    if model is not None and is_record(model):
        _refuse_capture_options(model, given)
        return Target(model, model, CaptureSettings(), False, shlex.quote(model), config, given)
    from aotcli.cli.default_model import choose_model

    spec, own = model, given
    if spec is None or spec in config.models:
        spec, own, chosen = choose_model(model, config, given)
        note(chosen)
    merged = own.over(GivenCapture(**config.capture))
    words = " ".join(shlex.quote(word) for word in [*([model] if model else []), *given_words(given)])
    return Target(spec, None, capture_settings(merged), merged.cache is not False, words, config, given)


def is_record(text: str) -> bool:
    """Whether a MODEL argument means a record: standard input, or a JSON file that is no configuration of a loader."""
    return text == STDIN or (text.endswith(_RECORD_SUFFIXES) and ":" not in text.rsplit(os.sep, 1)[0])


def capture_settings(given: GivenCapture) -> CaptureSettings:
    """Settings with defaults for what was not given. Raises InputError for a value that does not parse."""
    chosen: dict[str, Any] = {"inputs": given.inputs, "overrides": tuple(_pair(text) for text in given.overrides)}
    settable = {each.name for each in dataclasses.fields(CaptureSettings)} - chosen.keys()
    for each in dataclasses.fields(given):
        if each.name in settable and getattr(given, each.name) is not None:
            chosen[each.name] = getattr(given, each.name)
    settings = CaptureSettings(**chosen)
    _check_choice("--level", settings.level, LEVELS)
    _check_choice("--tensors", settings.tensors, TENSORS)
    return settings


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {text}", why="it takes a name and a value", fix="write --set layers=4")
    return key.strip(), value


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        near = get_close_matches(value, choices, n=1)
        raise InputError(
            f"{option} {value}",
            why=f"it is one of {', '.join(choices)}",
            fix=f"did you mean {option} {near[0]}?" if near else f"{option} {choices[0]} is the default",
        )


def given_words(given: GivenCapture) -> list[str]:
    """Capture options as they would be typed."""
    words: list[str] = []
    for text in given.inputs:
        words += ["--input", text]
    for text in given.overrides:
        words += ["--set", text]
    for flag, name, negative in _FLAGS:
        value = getattr(given, name)
        if value is None:
            continue
        if isinstance(value, bool):
            words += [flag] if value else [negative] if negative else []
        else:
            words += [flag, str(value)]
    return words


def _refuse_capture_options(record: str, given: GivenCapture) -> None:
    words = given_words(given)
    if words:
        raise InputError(
            f"{words[0]} does not go with a record",
            why=f"{record} holds a finished capture; how it was made cannot be changed any more",
            fix=f"leave it out, or trace the model again: aotcli trace MODEL {shlex.join(words)} -o {record}",
        )
