"""Policies: what a user wants to be saved or recomputed, as rules over modules, ops, lines, names and sizes.

A policy file is TOML:

    [[rule]]
    module = "h.*.attn"          # a glob over module paths; what lies inside belongs to it
    op = "aten.bmm*"             # a glob over ops, with or without overload, with or without namespace
    min_bytes = "1MiB"           # also max_bytes: the size of the memory behind the value, both ends included
    action = "recompute"         # or "save"

Further keys are `submodules` (false: the module's own ops only), `line` ("gpt.py:29") and `name` (a glob over the
graph's own names). A rule needs an action and at least one condition; of several rules the first that matches wins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import cast

from aotcli.errors import ConfigError, InputError
from aotcli.ir.sizes import parse_size, size_text

_TEXT_KEYS = ("module", "op", "line", "name")
_SIZE_KEYS = ("min_bytes", "max_bytes")
_KEYS = ("module", "submodules", "op", "line", "name", "min_bytes", "max_bytes", "action")


class Action(StrEnum):
    """What a rule asks for. RECOMPUTE means not saved: what the backward does not need is not computed there."""

    SAVE = "save"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule; a condition that is None always holds. Sizes are in bytes, both ends included.

    `label` says where the rule stands, for messages: ``rule 2 of attn.toml``, ``--save h.*.attn``.
    """

    action: Action
    module: str | None = None
    submodules: bool = True
    op: str | None = None
    line: str | None = None
    name: str | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    label: str = ""

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The conditions that are patterns, by key."""
        given = (("module", self.module), ("op", self.op), ("line", self.line), ("name", self.name))
        return tuple((key, value) for key, value in given if value is not None)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """The conditions that are sizes, by key."""
        given = (("min_bytes", self.min_bytes), ("max_bytes", self.max_bytes))
        return tuple((key, value) for key, value in given if value is not None)

    @property
    def conditions(self) -> str:
        """What the rule matches, in a phrase: ``module h.*.attn, op bmm``."""
        itself = "" if self.submodules else " itself"
        parts = [f"{key} {value}{itself if key == 'module' else ''}" for key, value in self.texts]
        words = {"min_bytes": "from", "max_bytes": "up to"}
        return ", ".join([*parts, *(f"{words[key]} {size_text(size)}" for key, size in self.sizes)])

    def __str__(self) -> str:
        asked = f"{self.action} {self.conditions}"
        if self.label.startswith("--"):  # an option of the command line says it all
            return self.label
        return f"{self.label} ({asked})" if self.label else asked


def read_policy(path: str | Path) -> tuple[PolicyRule, ...]:
    """The rules of a policy file. Raises ConfigError where it cannot be read or is no policy."""
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no valid TOML", why=str(error), fix="correct it at that place") from error
    except OSError as error:
        raise ConfigError(
            f"the policy file {path} cannot be read", why=error.strerror or str(error), fix="give another path"
        ) from error
    return parse_policy(document, path.name)


def parse_policy(document: Mapping[str, object], name: str) -> tuple[PolicyRule, ...]:
    """The rules of a policy document; `name` is the file's, for messages.

    Raises ConfigError for an unknown key, with the nearest known one, and for a value that a key does not take.
    """
    _refuse_unknown(name, document, ("rule",))
    tables = document.get("rule", [])
    if isinstance(tables, Mapping):
        raise ConfigError(f"{name}: rule is a table", why="there may be several rules", fix="write [[rule]] above each")
    if not isinstance(tables, list) or not tables:
        raise ConfigError(
            f"{name} holds no rule",
            why="a policy says which values to save or to recompute",
            fix='write [[rule]] and below it module = "h.*.attn" and action = "recompute"',
        )
    listed = cast("list[object]", tables)
    return tuple(_rule(table, f"rule {number} of {name}") for number, table in enumerate(listed, 1))


def policy_text(rules: Iterable[PolicyRule], comments: Iterable[str] = ()) -> str:
    """A policy file of `rules`, headed by `comments`; reading it gives the same rules, but for their labels."""
    lines = [f"# {comment}".rstrip() for comment in comments]
    for rule in rules:
        lines += ["", "[[rule]]"]
        for key, text in rule.texts:
            lines.append(f"{key} = {_quoted(text)}")
            if key == "module" and not rule.submodules:
                lines.append("submodules = false")
        lines += [f"{key} = {_quoted(size_text(size))}" for key, size in rule.sizes]
        lines.append(f"action = {_quoted(rule.action.value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string. What a basic string cannot hold as it is gets its escape."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '\\"':
        return f"\\{char}"
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _rule(table: object, label: str) -> PolicyRule:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{label} is no table", fix="write [[rule]] and the keys below it")
    given = cast("Mapping[str, object]", table)
    _refuse_unknown(label, given, _KEYS)
    texts = {key: _text(label, key, given[key]) for key in _TEXT_KEYS if key in given}
    sizes = {key: _bytes(label, key, given[key]) for key in _SIZE_KEYS if key in given}
    if not texts and not sizes:
        raise ConfigError(
            f"{label} has no condition",
            why="it would mean every value",
            fix='say which: module = "h.*", op = "gelu", min_bytes = "1MiB"; module = "**" means every module',
        )
    if sizes.get("min_bytes", 0) > sizes.get("max_bytes", sizes.get("min_bytes", 0)):
        raise ConfigError(f"{label}: min_bytes is above max_bytes", why="no value is as large", fix="exchange them")
    submodules = given.get("submodules", True)
    if not isinstance(submodules, bool) or ("submodules" in given and "module" not in given):
        raise ConfigError(
            f"{label}: submodules is {submodules!r}",
            why="it takes true or false, beside a module",
            fix="submodules = false",
        )
    return PolicyRule(
        _action(label, given.get("action")),
        module=texts.get("module"),
        submodules=submodules,
        op=texts.get("op"),
        line=texts.get("line"),
        name=texts.get("name"),
        min_bytes=sizes.get("min_bytes"),
        max_bytes=sizes.get("max_bytes"),
        label=label,
    )


def _action(label: str, value: object) -> Action:
    known = [action.value for action in Action]
    if value is None:
        raise ConfigError(f"{label} has no action", fix=f"write action = {_quoted(known[1])}, or {_quoted(known[0])}")
    if value not in known:
        near = get_close_matches(str(value), known, n=1)
        raise ConfigError(
            f"{label}: action is {value!r}",
            why=f"it is one of {', '.join(known)}",
            fix=f"did you mean {near[0]!r}?" if near else f"write {known[1]!r} or {known[0]!r}",
        )
    return Action(str(value))


def _text(label: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{label}: {key} is {value!r}", why="it takes a text", fix=f'write {key} = "..."')
    return value


def _bytes(label: str, key: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        try:
            return parse_size(value)
        except InputError as error:
            raise ConfigError(f"{label}: {key} is {value!r}", why=error.why, fix=error.fix) from error
    raise ConfigError(
        f"{label}: {key} is {value!r}", why="it takes a size, or a whole number of bytes", fix=f'write {key} = "1MiB"'
    )


def _refuse_unknown(where: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            raise ConfigError(
                f"{where} has an unknown key {key!r}",
                why=f"known are {', '.join(known)}",
                fix=f"did you mean {near[0]!r}?" if near else f"remove {key!r}",
            )
