"""``--set K=V``: filling a factory's parameters from the command line, converted as annotations and defaults say."""

from __future__ import annotations

import ast
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from aotcli.errors import WorkloadError

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_FILLED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Overrides:
    """The pairs of ``--set``, remembering which were used.

    Several factories (of the model, of the inputs) may take one key; a key that none takes is an error.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._texts = dict(pairs)
        self._used: set[str] = set()
        self._known: dict[str, None] = {}

    def arguments(self, factory: Callable[..., Any]) -> dict[str, Any]:
        """Those of the pairs that `factory` has a parameter for, converted. Raises WorkloadError for a bad value."""
        parameters = _parameters(factory)
        hints = _hints(factory)
        found: dict[str, Any] = {}
        open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        known = {each.name: each for each in parameters if each.kind in _FILLED}
        self._known.update(dict.fromkeys(known))
        for key, text in self._texts.items():
            parameter = known.get(key)
            if parameter is not None:
                hint = hints.get(key, inspect.Parameter.empty)
                found[key] = convert(key, text, hint, parameter.default)
            elif open_ended:
                found[key] = literal(text)
            else:
                continue
            self._used.add(key)
        return found

    def fields(self, known: dict[str, Any]) -> dict[str, Any]:
        """Those of the pairs that are keys of `known`, converted to the type of its values; for configurations."""
        self._known.update(dict.fromkeys(known))
        found: dict[str, Any] = {}
        for key, text in self._texts.items():
            if key in known:
                found[key] = convert(key, text, inspect.Parameter.empty, known[key])
                self._used.add(key)
        return found

    def rest(self) -> dict[str, Any]:
        """The pairs that nothing took so far, as literals; for a callee that says itself what it knows."""
        found = {key: literal(text) for key, text in self._texts.items() if key not in self._used}
        self._used.update(found)
        return found

    def check_used(self, taker: str) -> None:
        """Raise WorkloadError for the first key that nothing took."""
        for key in self._texts:
            if key in self._used:
                continue
            near = get_close_matches(key, self._known, n=3, cutoff=0.5)
            if near:
                fix = f"did you mean {', '.join(near)}?"
            elif self._known:
                names = list(self._known)
                more = f" and {len(names) - 20} more" if len(names) > 20 else ""
                fix = f"it takes {', '.join(names[:20])}{more}"
            else:
                fix = "only factories have settings: make `model` or `inputs` a function whose arguments have defaults"
            raise WorkloadError(f"--set {key}: {taker} has no setting {key!r}", fix=fix)


def _parameters(factory: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):  # builtins without a signature
        return []


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a factory, those of ``__init__`` for a class; empty where they do not resolve."""
    target = factory.__init__ if inspect.isclass(factory) else factory
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


def missing_arguments(factory: Callable[..., Any], given: Iterable[str]) -> list[str]:
    """Required parameters of `factory` that `given` leaves open."""
    kinds = (*_FILLED, inspect.Parameter.POSITIONAL_ONLY)
    required = [each.name for each in _parameters(factory) if each.default is each.empty and each.kind in kinds]
    return [name for name in required if name not in set(given)]


def literal(text: str) -> Any:
    """A Python literal (``true``, ``false`` and ``none`` in any case), else the text itself."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def convert(key: str, text: str, hint: Any, default: Any) -> Any:
    """`text` as the annotation says, else as the default's type says, else as a literal.

    Raises WorkloadError where the text is no such value.
    """
    for kind in _kinds(hint, default):
        try:
            return _convert_to(kind, text)
        except ValueError:
            continue
    names = " or ".join(_kind_name(kind) for kind in _kinds(hint, default))
    raise WorkloadError(f"--set {key}={text}: {text!r} is no {names}", fix=f"--set {key}={_example(default)}")


def _kinds(hint: Any, default: Any) -> list[Any]:
    """The types that a value may have, most telling first; [None] stands for "any literal"."""
    if hint is not inspect.Parameter.empty and hint is not Any:
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            parts = list(typing.get_args(hint))
            return sorted(parts, key=lambda part: (part is str, part is float))
        return [hint]
    if default is inspect.Parameter.empty or default is None:
        return [None]
    return [type(default)] if not isinstance(default, int) or isinstance(default, bool) else [int, float]


def _convert_to(kind: Any, text: str) -> Any:
    if kind is None:
        return literal(text)
    if kind is type(None):
        if text.lower() not in ("none", "null"):
            raise ValueError(text)
        return None
    if kind is bool:
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError(text)
        return text.lower() in _TRUE
    if kind in (int, float, str):
        return kind(text)
    origin = typing.get_origin(kind) or kind
    if origin is typing.Literal:
        return _choice({str(each): each for each in typing.get_args(kind)}, text)
    if inspect.isclass(origin) and issubclass(origin, enum.Enum):
        return _choice({**{str(each.value): each for each in origin}, **origin.__members__}, text)
    if origin in (list, tuple):
        return _sequence(origin, text)
    if _kind_name(origin) == "torch.dtype":
        return _dtype(text)
    return literal(text)


def _choice(choices: dict[str, Any], text: str) -> Any:
    if text not in choices:
        raise ValueError(text)
    return choices[text]


def _sequence(kind: type, text: str) -> Any:
    value = literal(text)
    if isinstance(value, (list, tuple)):
        return kind(value)
    return kind(literal(part.strip()) for part in text.split(","))


def _dtype(text: str) -> Any:
    import torch

    from aotcli.capture.inputs import torch_dtype_name

    return getattr(torch, torch_dtype_name(text, option="--set"))


def _kind_name(kind: Any) -> str:
    if kind is None or not inspect.isclass(kind):
        return str(kind)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _example(default: Any) -> str:
    return "VALUE" if default is inspect.Parameter.empty or default is None else str(default)
