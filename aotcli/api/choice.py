"""Which strategies are meant, and with which options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotcli.errors import InputError, StrategyError
from aotcli.strategies import Strategy, load_strategy, strategy_class


@dataclass(frozen=True, slots=True)
class ChosenStrategy:
    """A strategy, the name it was asked for by, and that name with the options that were given."""

    name: str
    label: str
    strategy: Strategy


def choose_strategies(
    strategy: str | Strategy | Sequence[str | Strategy], options: Mapping[str, object] | None = None
) -> tuple[ChosenStrategy, ...]:
    """Strategies by name with their options. Shared `options` go to each strategy that has them.

    Raises StrategyError for an unknown name, an option that none of them has, or a value that does not parse.
    """
    given = [strategy] if isinstance(strategy, str | Strategy) else list(strategy)
    if not given:
        raise InputError("no strategy was given", fix="name one, such as mincut; `aotcli strategies` lists them")
    shared = {key.replace("-", "_"): value for key, value in (options or {}).items()}
    unused = set(shared)
    chosen: list[ChosenStrategy] = []
    for each in given:
        name, own = (each, {}) if isinstance(each, Strategy) else parse_strategy(each)
        plain = name if isinstance(name, Strategy) else load_strategy(name)
        known = {option.name for option in dataclasses.fields(plain)}
        taken = {key: value for key, value in shared.items() if key in known}
        unused -= taken.keys()
        if isinstance(name, Strategy):
            chosen.append(ChosenStrategy(plain.name, plain.name, plain))
            continue
        # With one strategy, an option that it does not have is its own error, which names those that it has.
        wanted = {**(shared if len(given) == 1 else taken), **own}
        chosen.append(ChosenStrategy(name, _label(name, wanted), load_strategy(name, wanted)))
    if unused and len(given) > 1:
        raise StrategyError(
            f"none of the strategies has an option {min(unused).replace('_', '-')!r}",
            why="an option goes to every strategy that has it",
            fix="`aotcli strategies` lists each strategy's options",
        )
    return tuple(chosen)


def parse_strategy(text: str) -> tuple[str, dict[str, object]]:
    """``name:key=value,...`` as name and options; a bare ``key`` is ``key=true``.

    ``FILE.py:NAME`` is a name, and may be followed by ``:key=value``; ``NAME:VALUE`` is one where the strategy has a
    main option. A part without ``=`` after one with it continues that value.

    Raises StrategyError where the options do not parse.
    """
    name, separator, rest = text.rpartition(":") if ".py:" in text else text.partition(":")
    if not separator or (name.endswith(".py") and "=" not in rest):
        return text, {}
    if "=" not in rest and _has_main_option(name):
        return text, {}
    options: dict[str, object] = {}
    key = ""
    for part in (each.strip() for each in rest.split(",")):
        before, equals, value = part.partition("=")
        if equals and before.strip():
            key = before.strip()
            options[key] = value.strip()
        elif equals or not part:
            raise StrategyError(
                f"strategy {text!r}: {part!r} is no option",
                why="options are key=value, with commas between them",
                fix=f"write {name}:key=value",
            )
        elif key:
            options[key] = f"{options[key]},{part}"
        else:
            options[part] = "true"
    return name, options


def _has_main_option(name: str) -> bool:
    try:
        return strategy_class(name).argument is not None
    except StrategyError:  # unknown, or somebody else's: said when it is loaded
        return False


def _label(name: str, options: Mapping[str, object]) -> str:
    texts = [key if value in (True, "true") else f"{key}={value}" for key, value in options.items()]
    return f"{name}:{','.join(text.replace('_', '-') for text in texts)}" if texts else name


def usage_lines(chosen: ChosenStrategy, level: str) -> tuple[str, ...]:
    """Lines for a training script whose variable is `model`, that make it train by this strategy's plans."""
    backend = "inductor" if level == "inductor" else "aot_eager"
    strategy = chosen.strategy
    options = strategy.options
    changed = [f for f in dataclasses.fields(strategy) if f.name in options and options[f.name] != f.default]
    # NAME:VALUE sets an option, which is among those that changed.
    name = chosen.name if ".py:" in chosen.name else chosen.name.partition(":")[0]
    words = [f'strategy="{name}"', f'backend="{backend}"']
    words += [f"{each.name}={options[each.name]!r}" for each in changed]
    return ("import aotcli", f"model = aotcli.compile(model, {', '.join(words)})")
