"""Which model a command means that names none: the project's, its only one, or the last one traced in it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from aotcli.cli.config import Config, ModelEntry
from aotcli.cli.options import GivenCapture
from aotcli.errors import InputError
from aotcli.render.units import age_text

_DEFINES = re.compile(r"^(?:def )?(model|inputs)\b", re.MULTILINE)
_MAX_FILES = 200


def choose_model(name: str | None, config: Config, given: GivenCapture) -> tuple[str, GivenCapture, str]:
    """(spec, capture options, what to tell the user). `name` is a name of [tool.aotcli.models], or None.

    Raises InputError where there is nothing to choose, or too much.
    """
    if name is not None:
        return _from_entry(config, config.models[name], given, f"model: {config.models[name].spec} ({name})")
    source = f"pyproject.toml of {config.path.parent.name}" if config.path is not None else ""
    if config.model is not None:
        entry = config.models.get(config.model, ModelEntry(config.model))
        return _from_entry(config, entry, given, f"model: {entry.spec} ({source})")
    if len(config.models) == 1:
        entry = next(iter(config.models.values()))
        return _from_entry(config, entry, given, f"model: {entry.spec} ({source})")
    if config.models:
        names = ", ".join(config.models)
        raise InputError(
            "no MODEL was given",
            why=f"{config.path} names several models: {names}",
            fix=f"name one (aotcli partition {next(iter(config.models))}), or set one under [tool.aotcli]:\n"
            f'model = "{next(iter(config.models))}"',
        )
    if not in_ci():
        from aotcli.cli.last_model import recall

        last = recall()
        if last is not None:
            note = f"model: {last.spec} (last traced {age_text(time.time() - last.traced_at)})"
            return last.spec, given.over(last.given), note
    raise _nothing_found(config)


def _from_entry(config: Config, entry: ModelEntry, given: GivenCapture, note: str) -> tuple[str, GivenCapture, str]:
    return from_project(config, entry.spec), given.over(GivenCapture(**entry.capture)), note


def from_project(config: Config, spec: str) -> str:
    """A spec of pyproject.toml, whose paths start there, as seen from the current folder."""
    if config.path is None:
        return spec
    scheme, colon, rest = spec.partition(":") if spec.startswith(("hf:", "timm:")) else ("", "", spec)
    path, separator, name = rest.partition(":")
    if Path(path).is_absolute() or not (config.path.parent / path).is_file():
        return spec
    seen_from_here = os.path.relpath(config.path.parent / path)
    return f"{scheme}{colon}{seen_from_here}{separator}{name}"


def in_ci() -> bool:
    """Whether this runs in continuous integration, where nothing of earlier runs is used and nothing is left."""
    return os.environ.get("CI", "").lower() in ("true", "1")


def _nothing_found(config: Config) -> InputError:
    looked = [
        f"{config.path} sets no model"
        if config.path is not None
        else f"no pyproject.toml at or above {Path.cwd()} has a [tool.aotcli]"
    ]
    looked.append("under CI=true the last traced model is not used" if in_ci() else "no model was traced here before")
    example = _example_file()
    spec = example or "model.py"
    command = f"aotcli partition {spec} --strategy mincut"
    first = command if example else f"write model.py with `model` and `inputs`, then {command}"
    return InputError(
        "no MODEL was given, and there is none to choose",
        why="; ".join(looked),
        fix=f'{first}\nor set one for the project, in pyproject.toml:\n[tool.aotcli]\nmodel = "{spec}"',
    )


def _example_file() -> str | None:
    """A Python file here, or one folder down, that defines `model` and `inputs`."""
    here = Path.cwd()
    files = [*sorted(here.glob("*.py")), *sorted(here.glob("[!.]*/*.py"))]
    for path in files[:_MAX_FILES]:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if {"model", "inputs"} <= set(_DEFINES.findall(text)):
            return path.relative_to(here).as_posix()
    return None
