"""Flat dataclasses of a record (model, environment, settings, symbols, ...) as JSON objects, by their declared fields.

A field that a document does not have takes its default, and one that the class does not have is passed over: that is
what lets a newer minor version add fields.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from aotcli.ir.document import Json, Place

T = TypeVar("T")


def to_json(data: Any) -> Json:
    """A dataclass of numbers, strings, booleans, tuples and dataclasses; tuples become arrays."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: to_json(getattr(data, field.name)) for field in dataclasses.fields(data)}
    if isinstance(data, tuple):
        return [to_json(part) for part in data]  # pyright: ignore[reportUnknownVariableType]
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    raise TypeError(f"no JSON for {type(data).__name__}")


def from_json(kind: type[T], data: Json, place: Place) -> T:
    """The dataclass that `to_json` wrote. Raises RecordError where types do not fit or a needed field is missing."""
    given = place.object(data)
    hints = _hints(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # pyright: ignore[reportArgumentType]
        if field.name in given:
            values[field.name] = _value(hints[field.name], given[field.name], place / field.name)
        elif field.default is dataclasses.MISSING:
            raise place.error(f"{field.name!r} is missing")
    return kind(**values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(kind: Any, data: Json, place: Place) -> Any:
    origin = get_origin(kind)
    if origin in (UnionType, Union):
        return _one_of(get_args(kind), data, place)
    if origin is tuple:
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            return tuple([_value(kinds[0], part, place / i) for i, part in enumerate(place.array(data))])
        parts = place.array(data, len(kinds))
        return tuple([_value(each, part, place / i) for i, (each, part) in enumerate(zip(kinds, parts, strict=True))])
    if kind is bool:
        return place.boolean(data)
    if kind is int:
        return place.integer(data)
    if kind is str:
        return place.text(data)
    if kind is float:
        return _float(data, place)
    return from_json(kind, data, place)


def _one_of(kinds: tuple[Any, ...], data: Json, place: Place) -> Any:
    """The member of a union that `data` is; `int | float | None` keeps integers integers."""
    if data is None and NoneType in kinds:
        return None
    plain = {"bool": bool, "int": int, "float": float, "str": str}
    own = plain.get(type(data).__name__)
    rest = [kind for kind in kinds if kind is not NoneType]
    return _value(own if own in rest else rest[0], data, place)


def _float(data: Json, place: Place) -> float:
    number = float(place.number(data))
    if not math.isfinite(number):
        raise place.error("the number is out of range")
    return number
