"""`[tool.aotcli.check]` of pyproject.toml: which models are checked, and what is demanded of each.

    [tool.aotcli.check]
    strict_env = false                      # for all models; each may say otherwise

    [tool.aotcli.check.models.gpt]
    model = "train/gpt.py"                  # or a name of [tool.aotcli.models], or a record
    strategy = "mincut"                     # as --strategy takes it
    saved_bytes = { max = "2GiB", growth = "1%" }
    peak_bytes = { growth = "64MiB" }       # more than the baseline: a share of it, or a size
    recompute_flops = { max = "2.5 TFLOP", growth = "0%" }
    forbid_ops = ["aten._to_copy.default", "aten.*attention*"]
    structure = "exact"                     # or "equivalent", "ignore" (default)
    level = "inductor"                      # and any other capture option of [tool.aotcli]

A model of which nothing is demanded is held to no growth at all of saved_bytes and peak_bytes.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from aotcli.api.baselines import FOLDER, BaselineStore, check_name, shown
from aotcli.cli.config import (
    CAPTURE_KEYS,
    Config,
    ModelEntry,
    capture_table,
    check_texts,
    check_type,
    load_config,
    refuse_unknown,
)
from aotcli.cli.default_model import from_project
from aotcli.cli.options import GivenCapture
from aotcli.cli.target import capture_settings, given_words, is_record
from aotcli.errors import ConfigError, InputError
from aotcli.ir.amounts import parse_flops, parse_share
from aotcli.ir.check import CheckedModel, Limit, Limits, Quantity, Structure, Tolerance
from aotcli.ir.sizes import parse_size

_FIGURES = tuple(str(quantity) for quantity in Quantity)
_KEYS = ("model", "strategy", *_FIGURES, "forbid_ops", "structure", "strict_env")
_LIMIT_KEYS = (*_FIGURES, "forbid_ops", "structure")
_DEFAULT_LIMITS = tuple(Limit(quantity, growth=Tolerance()) for quantity in (Quantity.SAVED, Quantity.PEAK))
_USUAL_STRATEGY = "mincut"

_OP = re.compile(r"[\w*?\[\]!]+(\.[\w*?\[\]!]+)+")


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """The models of a project's `[tool.aotcli.check]`, in its order. `folder` is the project's."""

    folder: Path
    models: tuple[CheckedModel, ...]

    @property
    def store(self) -> BaselineStore:
        return BaselineStore(self.folder / FOLDER)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.models)

    def choose(self, names: Sequence[str]) -> tuple[CheckedModel, ...]:
        """The models of these names, each once; all where none is given. Raises InputError for an unknown name."""
        for name in names:
            if name not in self.names:
                near = get_close_matches(name, self.names, n=1)
                raise InputError(
                    f"there is no model {name!r} to check",
                    why=f"[tool.aotcli.check.models] has {', '.join(self.names)}",
                    fix=f"did you mean {near[0]!r}?" if near else f"aotcli check {self.names[0]}",
                )
        return tuple(model for model in self.models if not names or model.name in names)


def load_check_config(start: Path) -> CheckConfig:
    """What the nearest pyproject.toml says about checks. Raises ConfigError where it says nothing, or nonsense."""
    config = load_config(start)
    if config.path is None or not config.check:
        raise _nothing_to_check(config)
    where = f"{config.path} [tool.aotcli.check]"
    refuse_unknown(where, config.check, ("models", "strict_env"))
    strict = config.check.get("strict_env", False)
    check_type(where, "strict_env", strict, bool)
    tables = config.check.get("models", {})
    check_type(where, "models", tables, dict)
    if not tables:
        raise _nothing_to_check(config)
    _refuse_like_names(where, list(tables))
    models = [_model(config, name, table, strict=strict) for name, table in tables.items()]
    return CheckConfig(config.path.parent, tuple(models))


def _nothing_to_check(config: Config) -> ConfigError:
    name, spec = "NAME", "model.py"
    if config.models:
        name = next(iter(config.models))
        spec = config.models[name].spec
    elif config.model is not None:
        spec = config.model
        name = re.sub(r"\W+", "-", Path(spec.partition(":")[0]).stem).strip("-") or name
    return ConfigError(
        "there is no model to check",
        why=f"{config.path or 'no pyproject.toml'} {'has no' if config.path else 'with a'} [tool.aotcli.check.models]",
        fix=f"in pyproject.toml, write:\n[tool.aotcli.check.models.{name}]\n"
        f'model = "{spec}"\nsaved_bytes = {{ growth = "1%" }}\npeak_bytes = {{ growth = "1%" }}',
    )


def _refuse_like_names(where: str, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        try:
            check_name(name)
        except InputError as error:
            raise ConfigError(f"{where}: {error.what}", why=error.why, fix=error.fix) from None
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise ConfigError(
                f"{where}: {other!r} and {name!r} would share one file",
                why="many file systems do not tell capital letters from small ones",
                fix="rename one of them",
            )


def _model(config: Config, name: str, table: Any, *, strict: bool) -> CheckedModel:
    assert config.path is not None
    where = f"{config.path} [tool.aotcli.check.models.{name}]"
    if not isinstance(table, dict):
        fix = f'write [tool.aotcli.check.models.{name}] and below it model = "model.py"'
        raise ConfigError(f"{where} is no table", fix=fix)
    refuse_unknown(where, table, (*_KEYS, *CAPTURE_KEYS))
    spec = table.get("model", name if name in config.models else None)
    if spec is None:
        raise ConfigError(f"{where} does not say which model it is", fix='add model = "model.py"')
    check_type(where, "model", spec, str)
    strategy = table.get("strategy", _USUAL_STRATEGY)
    check_type(where, "strategy", strategy, str)
    entry = config.models.get(spec, ModelEntry(spec))
    target = from_project(config, entry.spec)
    own = GivenCapture(**capture_table(where, table)).over(GivenCapture(**entry.capture))
    if is_record(target) and own != GivenCapture():
        raise ConfigError(
            f"{where}: {given_words(own)[0].lstrip('-')} does not go with a record",
            why=f"{spec} holds a finished capture",
            fix="remove it, or name the model that was captured",
        )
    merged = own.over(GivenCapture(**config.capture))
    return CheckedModel(
        name=name,
        spec=entry.spec,
        target=target,
        strategy=strategy,
        limits=_limits(where, table, strict=strict),
        settings=_in_table(where, lambda: capture_settings(merged)),
        cache=merged.cache is not False,
        is_record=is_record(target),
        words=" ".join(shlex.quote(word) for word in [target, *given_words(own)]),
        config=shown(config.path),
    )


def _in_table(where: str, parse: Callable[[], Any]) -> Any:
    """What `parse` gives; an error of it says where the value stands."""
    try:
        return parse()
    except InputError as error:
        raise ConfigError(f"{where}: {error.what}", why=error.why, fix=error.fix) from None


def _limits(where: str, table: Mapping[str, Any], *, strict: bool) -> Limits:
    structure = table.get("structure", Structure.IGNORE.value)
    known = [each.value for each in Structure]
    if structure not in known:
        near = get_close_matches(str(structure), known, n=1)
        raise ConfigError(
            f"{where}: structure is {structure!r}",
            why=f"it is one of {', '.join(known)}",
            fix=f"did you mean {near[0]!r}?" if near else 'write structure = "exact"',
        )
    strict = table.get("strict_env", strict)
    check_type(where, "strict_env", strict, bool)
    figures = tuple(_limit(where, Quantity(key), table[key]) for key in _FIGURES if key in table)
    ops = table.get("forbid_ops", [])
    check_texts(where, "forbid_ops", ops)
    limits = Limits(figures, tuple(_op(where, text) for text in ops), Structure(structure), strict)
    if not any(key in table for key in _LIMIT_KEYS):
        return Limits(_DEFAULT_LIMITS, strict_env=strict)
    if not (limits.figures or limits.forbid_ops or limits.structure is not Structure.IGNORE):
        raise ConfigError(
            f"{where} demands nothing",
            why="a check that cannot fail is none",
            fix='add saved_bytes = { growth = "1%" }, or remove it',
        )
    return limits


def _op(where: str, text: str) -> str:
    name = text.removeprefix("torch.ops.")
    if not _OP.fullmatch(name):
        raise ConfigError(
            f"{where}: forbid_ops has {text!r}",
            why="an op has a namespace and a name; * stands for any letters",
            fix=f'write "aten.{name}", if that is meant' if name.isidentifier() else 'write "aten._to_copy.default"',
        )
    return name


def _limit(where: str, quantity: Quantity, table: Any) -> Limit:
    if not isinstance(table, dict) or not table:
        raise ConfigError(
            f"{where}: {quantity} is {table!r}",
            why="it takes a table with max, growth, or both",
            fix=f'write {quantity} = {{ growth = "1%" }}',
        )
    where = f"{where} {quantity}"
    refuse_unknown(where, table, ("max", "growth"))
    most = _amount(where, "max", quantity, table["max"]) if "max" in table else None
    growth = _tolerance(where, quantity, table["growth"]) if "growth" in table else None
    return Limit(quantity, most, growth)


def _tolerance(where: str, quantity: Quantity, value: Any) -> Tolerance:
    """``"1%"``, a bare number in [0, 1] as a share, or an amount."""
    share = parse_share(value) if isinstance(value, str) else None
    if share is not None:
        return Tolerance(share=share)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value <= 1:
            return Tolerance(share=Fraction(str(value)))
        raise ConfigError(
            f"{where}: growth is {value!r}",
            why="a bare number is a share between 0 and 1",
            fix=f'write "{value}%", or an amount with its unit' if value > 0 else 'write "0%"',
        )
    return Tolerance(amount=_amount(where, "growth", quantity, value))


def _amount(where: str, key: str, quantity: Quantity, value: Any) -> int:
    example = "2GiB" if quantity.in_bytes else "2.5 TFLOP"
    if quantity.in_bytes and isinstance(value, str):
        return _in_table(f"{where}: {key}", lambda: parse_size(value))
    if not quantity.in_bytes:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str):
            with contextlib.suppress(InputError):
                return parse_flops(value)
    share = ', or a share such as "1%"' if key == "growth" else ""
    raise ConfigError(
        f"{where}: {key} is {value!r}", why=f'it takes an amount such as "{example}"{share}', fix=f"correct {key}"
    )
