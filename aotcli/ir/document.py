"""JSON documents of aotcli: schema and version first, laid out for review, read with suspicion.

Reading never trusts the file: size, count and nesting are limited before anything is built, and every value is taken
out through a `Place`, which knows where in the document it stands and complains in the user's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from aotcli.errors import RecordError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAJOR, MINOR = 1, 0
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)

# Limits on what is parsed, so that parsing a hostile file stays below some 500 MB. A record of 100,000 nodes that
# repeat nothing has a tenth of this.
MOST_BYTES = 24 << 20
_MOST_CONTAINERS = 500_000
_MOST_COMMAS = 2_000_000
_LARGEST = (1 << 63) - 1

_INLINE_WIDTH = 116
_MAKE_AGAIN = "make it again with `aotcli trace MODEL -o FILE`"
_KINDS = {"aotcli.trace": "a trace", "aotcli.plan": "a plan", "aotcli.partition": "the output of `aotcli partition`"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document a value stands, such as ``regions[0].rows[12]``; takes values out and checks their type."""

    path: str

    def __truediv__(self, key: str | int) -> Place:
        if isinstance(key, int):
            return Place(f"{self.path}[{key}]")
        return Place(f"{self.path}.{key}" if self.path else key)

    def error(self, why: str) -> RecordError:
        where = f" at {self.path}" if self.path else ""
        return RecordError(f"the record is damaged{where}", why=why, fix=_MAKE_AGAIN)

    def _wrong(self, data: Json, wanted: str) -> NoReturn:
        names = {"dict": "an object", "list": "an array", "str": "a string", "bool": "a boolean", "NoneType": "null"}
        found = names.get(type(data).__name__, "a number")
        raise self.error(f"{wanted} is expected here, and {found} stands there")

    def object(self, data: Json) -> dict[str, Json]:
        return data if isinstance(data, dict) else self._wrong(data, "an object")

    def array(self, data: Json, length: int | None = None) -> list[Json]:
        if not isinstance(data, list):
            self._wrong(data, "an array")
        if length is not None and len(data) != length:
            raise self.error(f"an array of {length} is expected here, and one of {len(data)} stands there")
        return data

    def text(self, data: Json) -> str:
        return data if isinstance(data, str) else self._wrong(data, "a string")

    def boolean(self, data: Json) -> bool:
        return data if isinstance(data, bool) else self._wrong(data, "a boolean")

    def integer(self, data: Json, least: int = -_LARGEST, most: int = _LARGEST) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self._wrong(data, "an integer")
        if not least <= data <= most:
            raise self.error(f"{str(data)[:30]} is out of range")
        return data

    def number(self, data: Json) -> int | float:
        return data if isinstance(data, float) else self.integer(data)

    def field(self, data: Mapping[str, Json], key: str) -> Json:
        if key not in data:
            raise self.error(f"{key!r} is missing")
        return data[key]


def parse(text: str, schema: str) -> tuple[dict[str, Json], str]:
    """The document in `text`, and a note where a newer aotcli wrote it ("" otherwise).

    Raises RecordError where the text is damaged, too large, not of this schema, or of a newer major version.
    """
    document = Place("").object(_load(text))
    name = document.get("schema")
    if name != schema:
        wanted = _KINDS[schema]
        if isinstance(name, str) and name in _KINDS:
            fix = "--strategy replay:FILE applies a plan" if name == "aotcli.plan" else f"give {wanted}"
            raise RecordError(f"this is {_KINDS[name]}, not {wanted}", why=f"its schema is {name}", fix=fix)
        raise RecordError(
            f"this is not {wanted} of aotcli",
            why='the file is JSON, but its "schema" is not one of aotcli',
            fix=_MAKE_AGAIN,
        )
    return document, _version_note(document.get("schema_version"))


def _version_note(version: Json) -> str:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise Place("schema_version").error("a version such as 1.0 is expected here")
    major, minor = int(match[1]), int(match[2])
    if major != MAJOR:
        raise RecordError(
            f"the record is of version {major}.{minor}; this aotcli reads {MAJOR}.x",
            why="a change of the first number means that older readers would misread it",
            fix="update aotcli (`pip install -U aotcli`), or make the record again with this one",
        )
    if minor > MINOR:
        return f"the record is of version {major}.{minor}, newer than {MAJOR}.{MINOR}: what is new in it was left out"
    return ""


def _load(text: str) -> Json:
    if len(text) > MOST_BYTES or text.count("[") + text.count("{") > _MOST_CONTAINERS or text.count(",") > _MOST_COMMAS:
        raise RecordError(
            "the record is too large",
            why=f"aotcli reads records up to {MOST_BYTES >> 20} MiB of text",
            fix=_MAKE_AGAIN,
        )
    try:
        data: Json = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()  # half of a surrogate pair cannot be printed later
    except RecursionError:
        raise Place("").error("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise Place("").error("it holds half a character") from None
    except json.JSONDecodeError as error:
        if not text.strip():
            raise Place("").error("it is empty") from None
        raise Place("").error(f"it is no JSON: {error.msg} at line {error.lineno}; it may be cut short") from None
    except ValueError:
        raise Place("").error("it holds a number that is out of range") from None
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_FLAT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def render(document: Mapping[str, Json]) -> str:
    """`document` as text: keys in the order given, what fits on a line on one line, numbers in filled lines."""
    return "\n".join(_layout(dict(document), 0, expand=True)) + "\n"


def _layout(data: Json, depth: int, *, expand: bool = False) -> Iterator[str]:
    """Lines of `data`, without what stands before and after it on its first and last line."""
    flat = _FLAT.encode(data)
    if not isinstance(data, (dict, list)) or not data or (not expand and len(flat) <= _INLINE_WIDTH):
        yield flat
        return
    margin = " " * (depth + 1)
    opening, closing = ("{", "}") if isinstance(data, dict) else ("[", "]")
    yield opening
    if isinstance(data, list) and not any(isinstance(part, (dict, list)) for part in data):
        for line in _filled([_FLAT.encode(part) for part in data]):
            yield margin + line
    else:
        items = _items(data)
        for number, (head, part) in enumerate(items):
            lines = list(_layout(part, depth + 1))
            lines[0] = f"{margin}{head}{lines[0]}"
            if number < len(items) - 1:
                lines[-1] += ","
            yield from lines
    yield " " * depth + closing


def _items(data: dict[str, Json] | list[Json]) -> list[tuple[str, Json]]:
    """What stands before each part, and the part."""
    if isinstance(data, list):
        return [("", part) for part in data]
    return [(f"{_FLAT.encode(key)}: ", part) for key, part in data.items()]


def _filled(texts: list[str]) -> Iterator[str]:
    """`texts` joined by commas, broken into lines."""
    line = ""
    for number, text in enumerate(texts):
        piece = text + ("," if number < len(texts) - 1 else "")
        if line and len(line) + len(piece) > _INLINE_WIDTH:
            yield line
            line = ""
        line += piece
    yield line
