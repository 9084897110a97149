"""`[tool.aotcli]` of the nearest pyproject.toml: which models a project has, and how they are captured.

    [tool.aotcli]
    model = "train/model.py"            # the model of commands that name none
    strategy = "mincut"                 # or a list
    level = "inductor"                  # any capture option: device, dtype, tensors, seed, ...
    input = ["i64[8,1024]<50257"]
    set = { layers = 4 }

    [tool.aotcli.models]                # models by name; each a path, or a table with its own options
    gpt = "train/gpt.py"
    small = { model = "train/gpt.py", set = { layers = 2 } }

    [tool.aotcli.check.models.gpt]      # what `aotcli check` demands: aotcli/cli/check_config.py
    [tool.aotcli.lint]                  # which rules `aotcli lint` applies: aotcli/cli/lint_options.py

Precedence, highest first: the command line, the model's own table, [tool.aotcli], the defaults.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aotcli.errors import ConfigError

# Key -> (the field of GivenCapture, the type its value must have).
CAPTURE_KEYS: Mapping[str, tuple[str, type]] = {
    "input": ("inputs", list),
    "set": ("overrides", dict),
    "device": ("device", str),
    "dtype": ("dtype", str),
    "autocast": ("autocast", str),
    "level": ("level", str),
    "dynamic": ("dynamic", bool),
    "tensors": ("tensors", str),
    "seed": ("seed", int),
    "train": ("train", bool),
    "loss": ("loss", bool),
    "cache": ("cache", bool),
    "with-source": ("with_source", bool),
    "anonymize": ("anonymize", bool),
}
_TYPE_NAMES = {list: "a list of texts", dict: "a table", str: "a text", bool: "true or false", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of the configuration: its spec, relative to the project, and capture settings by GivenCapture field."""

    spec: str
    capture: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """What a project says. `path` is the pyproject.toml, None where there is none with [tool.aotcli].

    `check` and `lint` are the tables of those names as they stand: only the commands that use them read them.
    """

    path: Path | None = None
    model: str | None = None
    models: Mapping[str, ModelEntry] = field(default_factory=dict)
    strategies: tuple[str, ...] = ()
    capture: Mapping[str, Any] = field(default_factory=dict)
    check: Mapping[str, Any] = field(default_factory=dict)
    lint: Mapping[str, Any] = field(default_factory=dict)


def load_config(start: Path) -> Config:
    """The configuration that holds in folder `start`: of the nearest pyproject.toml with a [tool.aotcli] table.

    Raises ConfigError for a file that does not parse, and for keys and values that are not understood.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            table = _tool_table(path)
            if table is not None:
                return _parse(path, table)
    return Config()


def _tool_table(path: Path) -> dict[str, Any] | None:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no valid TOML", why=str(error), fix="correct it at that place") from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read", why=str(error.strerror or error), fix="make it readable, or run elsewhere"
        ) from error
    tool = document.get("tool", {})
    table = tool.get("aotcli") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.aotcli is no table", fix='write [tool.aotcli] and below it model = "model.py"')
    return table


def _parse(path: Path, table: Mapping[str, Any]) -> Config:
    where = f"{path} [tool.aotcli]"
    refuse_unknown(where, table, ("model", "models", "strategy", "check", "lint", *CAPTURE_KEYS))
    model = table.get("model")
    if model is not None:
        check_type(where, "model", model, str)
    strategy = table.get("strategy", [])
    strategies = [strategy] if isinstance(strategy, str) else strategy
    check_texts(where, "strategy", strategies)
    models = table.get("models", {})
    check_type(where, "models", models, dict)
    entries = {name: _entry(f"{path} [tool.aotcli.models]", name, value) for name, value in models.items()}
    check = table.get("check", {})
    check_type(where, "check", check, dict)
    lint = table.get("lint", {})
    check_type(where, "lint", lint, dict)
    return Config(path, model, entries, tuple(strategies), capture_table(where, table), check, lint)


def _entry(where: str, name: str, value: Any) -> ModelEntry:
    if isinstance(value, str):
        return ModelEntry(value)
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        raise ConfigError(
            f"{where}: {name} does not say which model it is",
            fix=f'write {name} = "model.py" or {name} = {{ model = "model.py", level = "aten" }}',
        )
    where = f"{where} {name}"
    refuse_unknown(where, value, ("model", *CAPTURE_KEYS))
    return ModelEntry(value["model"], capture_table(where, value))


def capture_table(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The capture options of a table, by field of GivenCapture. Raises ConfigError for a value of another type."""
    found: dict[str, Any] = {}
    for key, (name, kind) in CAPTURE_KEYS.items():
        if key not in table:
            continue
        value = table[key]
        if kind is list:
            value = [value] if isinstance(value, str) else value
            check_texts(where, key, value)
            found[name] = tuple(value)
        else:
            check_type(where, key, value, kind)
            found[name] = tuple(f"{k}={_override_text(v)}" for k, v in value.items()) if kind is dict else value
    return found


def _override_text(value: Any) -> str:
    """A TOML value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_unknown(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raises ConfigError for a key that is not `known`, with the nearest one that is."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            raise ConfigError(
                f"{where} has an unknown key {key!r}",
                why=f"known are {', '.join(known)}",
                fix=f"did you mean {near[0]!r}?" if near else f"remove {key!r}",
            )


def check_type(where: str, key: str, value: Any, kind: type) -> None:
    """Raises ConfigError where `value` is not of `kind`."""
    # bool is an int to Python, and not to a reader.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{where}: {key} is {value!r}", why=f"it takes {_TYPE_NAMES[kind]}", fix=f"correct {key}")


def check_texts(where: str, key: str, value: Any) -> None:
    """Raises ConfigError where `value` is no list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(
            f"{where}: {key} is {value!r}", why="it takes a text or a list of texts", fix=f"correct {key}"
        )
