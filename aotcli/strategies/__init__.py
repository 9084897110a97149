"""The registry of strategies: one file each, discovered by name, imported when asked for.

A file's stem is its strategy's name (with "-" for "_"); files that start with an underscore are not strategies. Others
come from the entry point group `aotcli.strategies` and from ``FILE.py:NAME``: a `Strategy`, or a plain
`partition_fn` of AOTAutograd, which is then run on a copy of the captured graph.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from aotcli.errors import StrategyError
from aotcli.strategies._contract import Strategy
from aotcli.strategies._options import OptionInfo, did_you_mean, option_infos, parse_options

ENTRY_POINT_GROUP = "aotcli.strategies"

__all__ = [
    "ENTRY_POINT_GROUP",
    "OptionInfo",
    "Strategy",
    "StrategyInfo",
    "describe_strategies",
    "load_strategy",
    "strategy_class",
    "strategy_names",
]


@dataclass(frozen=True, slots=True)
class StrategyInfo:
    """A line of `aotcli strategies`. `origin` is "aotcli", or the entry point's value."""

    name: str
    summary: str
    aliases: tuple[str, ...]
    needs_live: bool
    options: tuple[OptionInfo, ...]
    origin: str = "aotcli"


def strategy_names() -> tuple[str, ...]:
    """Every strategy's name: our own in alphabetical order, then those of entry points. Imports none of them."""
    return (*_own_stems(), *(name for name in _entry_points() if name not in _own_stems()))


def strategy_class(name: str) -> type[Strategy]:
    """The class of a strategy of ours by its name or alias. Raises StrategyError on an unknown name."""
    own = _own_stems()
    if name in own:
        return _class_in(importlib.import_module(f"{__name__}.{own[name]}"))
    for stem in own.values():
        found = _class_in(importlib.import_module(f"{__name__}.{stem}"))
        if name in found.aliases:
            return found
    raise _unknown(name)


def load_strategy(name: str, options: Mapping[str, object] | None = None) -> Strategy:
    """A strategy by name, alias, entry point, ``FILE.py:NAME``, or ``NAME:VALUE`` where the strategy has a main option.

    Option values are texts from the command line, or values of the field's type. Raises StrategyError on an unknown
    name, an unknown option or a value that does not parse.
    """
    given = dict(options or {})
    path, separator, attribute = name.rpartition(":")
    if separator and path.endswith(".py"):
        return _as_strategy(_load_from_file(Path(path), attribute), name, given)
    name, separator, value = name.partition(":")
    if separator:
        given = {_main_option(name): value, **given}
    point = None if name in _own_stems() else _entry_points().get(name)
    if point is not None:
        return _as_strategy(_load_entry_point(point), name, given)
    return _instance(strategy_class(name), given)


def _main_option(name: str) -> str:
    """The option that ``NAME:VALUE`` sets."""
    found = strategy_class(name)
    if found.argument is None:
        raise StrategyError(
            f"strategy {name} takes no value after a colon",
            why="only a strategy with one main option does, and FILE.py:NAME means a strategy in a file",
            fix=f"write --strategy {name}; its options are listed by `aotcli strategies`",
        )
    return found.argument


def describe_strategies() -> tuple[StrategyInfo, ...]:
    """What `aotcli strategies` lists: ours with their options, then entry points, which are not imported."""
    infos = [_describe(strategy_class(name)) for name in _own_stems()]
    for name, point in _entry_points().items():
        if name not in _own_stems():
            infos.append(StrategyInfo(name, f"from {point.value}", (), False, (), origin=point.value))
    return tuple(infos)


def _describe(found: type[Strategy]) -> StrategyInfo:
    return StrategyInfo(found.name, found.summary, found.aliases, found.needs_live, option_infos(found))


@cache
def _own_stems() -> dict[str, str]:
    stems = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return {stem.replace("_", "-"): stem for stem in stems}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda each: each.name)}


def _class_in(module: ModuleType) -> type[Strategy]:
    """The one concrete strategy that a module defines."""
    for value in vars(module).values():
        if inspect.isclass(value) and issubclass(value, Strategy) and value.__module__ == module.__name__:
            return value
    raise StrategyError(
        f"{module.__name__} defines no strategy",
        why="every file of aotcli/strategies without a leading underscore must define one subclass of Strategy",
        fix="define it, or rename the file to start with an underscore",
    )


def _unknown(name: str) -> StrategyError:
    known = [*strategy_names()]
    aliases = [alias for each in _own_stems() for alias in strategy_class(each).aliases]
    return StrategyError(
        f"there is no strategy {name!r}",
        why="known are " + ", ".join(known) + "; or FILE.py:NAME for one of your own",
        fix=did_you_mean(name, [*known, *aliases]) or "choose one of these; `aotcli strategies` describes them",
    )


def _load_from_file(path: Path, attribute: str) -> Any:
    if not path.is_file():
        raise StrategyError(
            f"there is no file {path}",
            why="a strategy FILE.py:NAME is read from that file",
            fix="give its path as seen from this folder",
        )
    spec = importlib.util.spec_from_file_location(f"aotcli_user_strategy_{path.stem}", path)
    assert spec is not None  # a path that ends in .py always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StrategyError(
            f"{path} cannot be imported",
            why=f"{type(error).__name__}: {error}",
            fix="mend that line; --debug shows the whole traceback",
        ) from error
    if attribute not in vars(module):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise StrategyError(
            f"{path} defines no {attribute!r}",
            why="it defines " + (", ".join(public) or "nothing"),
            fix=did_you_mean(attribute, public),
        )
    return vars(module)[attribute]


def _load_entry_point(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise StrategyError(
            f"the strategy {point.name!r} cannot be loaded",
            why=f"its entry point {point.value} raised {type(error).__name__}: {error}",
            fix="repair or uninstall the package that registers it",
        ) from error


def _as_strategy(found: Any, name: str, options: dict[str, object]) -> Strategy:
    if inspect.isclass(found) and issubclass(found, Strategy):
        return _instance(found, options)
    if isinstance(found, Strategy):
        return _instance(type(found), {**found.options, **options})
    if not callable(found):
        raise StrategyError(
            f"{name} is neither a strategy nor a partition function",
            why=f"it is a {type(found).__name__}",
            fix="give a subclass of aotcli.strategies.Strategy, or a partition function as AOTAutograd calls it",
        )
    from aotcli.strategies._partition_fn import PartitionFunction

    if options:
        raise StrategyError(
            f"{name} takes no options",
            why="it is a plain partition function, and its parameters are PyTorch's",
            fix="leave the options out, or wrap it in a subclass of aotcli.strategies.Strategy",
        )
    return PartitionFunction(function=found, label=name)


def _instance(found: type[Strategy], options: Mapping[str, object]) -> Strategy:
    return found(**parse_options(found, options))
