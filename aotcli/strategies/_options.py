"""A strategy's options: its dataclass fields, and the texts of the command line turned into their values."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from aotcli.errors import StrategyError
from aotcli.strategies._contract import Strategy

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option: `name` as on the command line (``max-distance``), `kind` as text (``int``, ``inductor|nvfuser``)."""

    name: str
    kind: str
    default: object
    help: str


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A phrase with the nearest known name, or "" where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def option_infos(strategy: type[Strategy]) -> tuple[OptionInfo, ...]:
    """The options of a strategy in the order of its fields."""
    hints = get_type_hints(strategy)
    infos: list[OptionInfo] = []
    for each in fields(strategy):
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        kind = _kind_text(hints[each.name])
        infos.append(OptionInfo(option_name(each.name), kind, default, str(each.metadata.get("help", ""))))
    return tuple(infos)


def option_name(field_name: str) -> str:
    """A field's name as the command line spells it."""
    return field_name.replace("_", "-")


def parse_options(strategy: type[Strategy], options: Mapping[str, object]) -> dict[str, Any]:
    """Values for the fields of `strategy`. Names may be spelled with "-" or "_"; only texts are parsed.

    Raises StrategyError on an option that the strategy does not have, naming those it has, and on a text that is not
    of the field's type.
    """
    hints = get_type_hints(strategy)
    known = [each.name for each in fields(strategy)]
    values: dict[str, Any] = {}
    for given, value in options.items():
        name = given.replace("-", "_")
        if name not in known:
            raise _unknown_option(strategy, given, known)
        values[name] = _parse(value, hints[name], strategy.name, given) if isinstance(value, str) else value
    return values


def _unknown_option(strategy: type[Strategy], given: str, known: list[str]) -> StrategyError:
    spelled = [option_name(each) for each in known]
    listed = "its options are " + ", ".join(spelled) if spelled else "it has no options"
    near = did_you_mean(option_name(given), spelled)
    return StrategyError(f"strategy {strategy.name} has no option {given!r}", why=listed, fix=near)


def _parse(text: str, kind: Any, strategy: str, option: str) -> Any:
    origin, members = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if text.lower() == "none" and type(None) in members:
            return None
        return _parse(text, next(each for each in members if each is not type(None)), strategy, option)
    if origin is Literal:
        if text in members:
            return text
        raise _bad_value(text, kind, strategy, option, did_you_mean(text, members))
    if origin is tuple:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return tuple(_parse(part, members[0], strategy, option) for part in parts)
    if kind is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise _bad_value(text, kind, strategy, option)
    try:
        return kind(text)
    except ValueError as error:
        raise _bad_value(text, kind, strategy, option) from error


def _bad_value(text: str, kind: Any, strategy: str, option: str, fix: str = "") -> StrategyError:
    return StrategyError(
        f"{text!r} is no value for option {option!r} of strategy {strategy}",
        why=f"it takes {_kind_text(kind)}",
        fix=fix,
    )


def _kind_text(kind: Any) -> str:
    """A field's type as help shows it."""
    origin, members = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind_text(each) for each in members)
    if origin is Literal:
        return "|".join(str(each) for each in members)
    if origin is tuple:
        return f"{_kind_text(members[0])},..."
    if kind is bool:
        return "true or false"
    return "none" if kind is type(None) else str(getattr(kind, "__name__", kind))
