"""Which rules `aotcli lint` applies: what the command line says, else `[tool.aotcli.lint]` of pyproject.toml.

[tool.aotcli.lint]
select = ["AOT00"]          # or one text; codes or their beginnings
ignore = ["AOT002"]
min-bytes = "16MiB"         # or a whole number of bytes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aotcli.api.lint import DEFAULT_MIN_BYTES
from aotcli.cli.config import check_texts, load_config, refuse_unknown
from aotcli.errors import ConfigError, InputError
from aotcli.ir.sizes import parse_size

_KEYS = ("select", "ignore", "min-bytes")


@dataclass(frozen=True, slots=True)
class LintChoices:
    """Rules by codes or their beginnings, and the least number of bytes at stake."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_bytes: int


def lint_choices(select: Sequence[str] | None, ignore: Sequence[str] | None, min_bytes: str | None) -> LintChoices:
    """The choices of a command in the current folder. An option takes the place of its key.

    Raises InputError for an option and ConfigError for a key that is not understood.
    """
    config = load_config(Path.cwd())
    table = config.lint
    where = f"{config.path} [tool.aotcli.lint]"
    refuse_unknown(where, table, _KEYS)
    return LintChoices(
        _codes(select) if select else _listed(where, "select", table),
        _codes(ignore) if ignore else _listed(where, "ignore", table),
        _option_size(min_bytes) if min_bytes is not None else _listed_size(where, table),
    )


def _codes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _listed(where: str, key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    value = table.get(key, [])
    texts = [value] if isinstance(value, str) else value
    check_texts(where, key, texts)
    return _codes(texts)


def _option_size(text: str) -> int:
    if text.strip() == "0":
        return 0
    try:
        return parse_size(text)
    except InputError as error:
        raise InputError(f"--min-bytes {text}", why=error.why, fix=error.fix) from None


def _listed_size(where: str, table: Mapping[str, Any]) -> int:
    value = table.get("min-bytes", DEFAULT_MIN_BYTES)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        try:
            return parse_size(value)
        except InputError as error:
            raise ConfigError(f"{where}: min-bytes is {value!r}", why=error.why, fix=error.fix) from None
    raise ConfigError(
        f"{where}: min-bytes is {value!r}",
        why="it takes a size, or a whole number of bytes",
        fix='write min-bytes = "1MiB"',
    )
