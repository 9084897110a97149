"""Templates of a record, read: all of a node but its row's integers (aotcli/ir/encode.py says what those are)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from aotcli.ir.constants import Pattern, count_refs, pattern_from_json
from aotcli.ir.document import Json, Place
from aotcli.ir.encode import DEFAULT_DEVICE, DEFAULT_TAG, contiguous_stride
from aotcli.ir.joint import NodeKind, Tag
from aotcli.ir.names import count_holes, default_stem
from aotcli.ir.tensor import Dim, OpaqueSpec, SymbolSpec

_MOST_NESTED = 8
_LARGEST_SIZE = 1 << 50
_TAGS = {str(tag): tag for tag in Tag}
_KINDS = {str(kind): kind for kind in NodeKind}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor's layout without its storage."""

    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    dtype: str
    device: str
    nbytes: int
    storage_nbytes: int
    hint: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a value. Its storage is "new", that of tensor `part` of reference `ref` ("of"), "none" or "told"."""

    spec: Spec
    storage: str
    ref: int = 0
    part: int = 0


ValuePattern = Tensor | SymbolSpec | OpaqueSpec | None | tuple["ValuePattern", ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from; `module` is a pattern."""

    module: str | None = None
    module_type: str | None = None
    source: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A node without its row. `refs` counts its references, `told` the storages that the row says; `module_holes` and
    `origin_holes` count open numbers. `cost_bytes` is about what one node of it takes in memory."""

    kind: NodeKind
    stem: str
    target: str | None
    jump: bool
    args: tuple[Pattern, ...]
    kwargs: tuple[tuple[str, Pattern], ...]
    refs: int
    value: ValuePattern
    told: int
    place: Origin
    origin: str | None
    layer: bool
    module_holes: int
    origin_holes: int
    tag: str | None
    checkpoint: str | None
    ac_graph_id: int | None
    region_budget: float | None
    tags: frozenset[Tag]
    mutable_args: tuple[str, ...]
    binds: str | None
    flops: int | None
    cost_bytes: int

    @property
    def ints(self) -> int:
        """How many integers a row of this template has."""
        return self.jump + self.refs + self.told + (self.module_holes + self.origin_holes if self.layer else 0)


class TemplateReader:
    """Reads the tables of a document; `lenient` passes over tags that a newer version may have added."""

    def __init__(self, document: Mapping[str, Json], *, lenient: bool = False) -> None:
        self._lenient = lenient
        self._specs = _read(document, "specs", _spec)
        self._places = _read(document, "places", _origin)
        self._ops = _read(document, "ops", self._tags)

    def templates(self, document: Mapping[str, Json]) -> dict[str, Template]:
        """The templates by label."""
        return _read(document, "templates", self._template)

    def _tags(self, data: Json, place: Place) -> frozenset[Tag]:
        names = [place.text(name) for name in place.array(data)]
        unknown = [name for name in names if name not in _TAGS]
        if unknown and not self._lenient:
            raise place.error(f"{unknown[0]!r} is no tag of an op")
        return frozenset(_TAGS[name] for name in names if name in _TAGS)

    def _template(self, data: Json, place: Place) -> Template:
        given = place.object(data)
        kind, target, stem = _identity(given, place)
        args = tuple(pattern_from_json(arg, place / "args") for arg in place.array(given.get("args", [])))
        named = place.object(given.get("kwargs", {}))
        kwargs = tuple((key, pattern_from_json(arg, place / "kwargs")) for key, arg in named.items())
        refs = sum(count_refs(arg) for arg in args) + sum(count_refs(arg) for _, arg in kwargs)
        value = self._value(given.get("value"), place / "value", refs)
        told, tensors = _count(value, "told"), _count(value)
        at = self._place(given.get("at"), place)
        origin = _optional_text(given, "origin", place)
        tags = given.get("tags")
        usual = self._ops.get(target or "", frozenset()) if kind is NodeKind.OP else frozenset[Tag]()
        names = len(stem) + len(at.module or "") + len(origin or "")
        return Template(
            kind=kind,
            stem=stem,
            target=target,
            jump=place.boolean(given.get("jump", False)),
            args=args,
            kwargs=kwargs,
            refs=refs,
            value=value,
            told=told,
            place=at,
            origin=origin,
            layer=place.boolean(given.get("layer", False)),
            module_holes=0 if at.module is None else count_holes(at.module),
            origin_holes=0 if origin is None else count_holes(origin),
            tag=_optional_text(given, "tag", place) if "tag" in given else DEFAULT_TAG,
            checkpoint=_optional_text(given, "checkpoint", place),
            ac_graph_id=None if given.get("ac_graph_id") is None else place.integer(given["ac_graph_id"]),
            region_budget=_region_budget(given.get("region_budget"), place),
            tags=usual if tags is None else self._tags(tags, place / "tags"),
            mutable_args=tuple(place.text(name) for name in place.array(given.get("mutable_args", []))),
            binds=_optional_text(given, "binds", place),
            flops=None if given.get("flops", 0) is None else place.integer(given.get("flops", 0), 0),
            cost_bytes=500 + 4 * names + 40 * refs + 160 * tensors,
        )

    def _place(self, data: Json, place: Place) -> Origin:
        if data is None:
            return Origin()
        label = place.text(data)
        if label not in self._places:
            raise place.error(f"the place {label!r} is not in the table")
        return self._places[label]

    def _value(self, data: Json, place: Place, refs: int, depth: int = 0) -> ValuePattern:
        if data is None:
            return None
        if isinstance(data, str):
            return self._tensor(data, place, refs)
        if isinstance(data, list):
            if depth > _MOST_NESTED:
                raise place.error(f"values nested deeper than {_MOST_NESTED}")
            return tuple([self._value(part, place, refs, depth + 1) for part in data])
        given = place.object(data)
        if "opaque" in given:
            return OpaqueSpec(place.text(given["opaque"]), place.text(place.field(given, "type")))
        hint = given.get("hint")
        known = hint if hint is None or isinstance(hint, bool) else place.number(hint)
        return SymbolSpec(place.text(place.field(given, "symbol")), place.text(place.field(given, "expr")), known)

    def _tensor(self, text: str, place: Place, refs: int) -> Tensor:
        label, at, storage = text.rpartition("@")
        spec = self._specs.get(label if at else text)
        if spec is None:
            raise place.error(f"the spec {text!r} is not in the table")
        if not at:
            return Tensor(spec, "new")
        if storage in ("-", "*"):
            return Tensor(spec, "none" if storage == "-" else "told")
        ref, _, part = storage.partition(".")
        if not _is_small(ref) or not _is_small(part or "0") or int(ref) >= refs:
            raise place.error(f"the storage {storage!r} is that of no reference")
        return Tensor(spec, "of", int(ref), int(part or "0"))


def _is_small(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def _read(document: Mapping[str, Json], name: str, read: Callable[[Json, Place], T]) -> dict[str, T]:
    """A table of the document, each entry read by `read`."""
    place = Place(name)
    return {key: read(data, place / key) for key, data in place.object(Place("").field(document, name)).items()}


def _identity(given: Mapping[str, Json], place: Place) -> tuple[NodeKind, str | None, str]:
    """(kind, target or None where it is the node's own name, stem of the name)."""
    if "op" in given:
        target = place.text(given["op"])
        return NodeKind.OP, target, place.text(given.get("name", default_stem(target)))
    name = place.text(place.field(given, "kind"))
    if name not in _KINDS:
        raise place.error(f"{name!r} is no kind of node")
    return _KINDS[name], _optional_text(given, "target", place), place.text(place.field(given, "name"))


def _optional_text(given: Mapping[str, Json], key: str, place: Place) -> str | None:
    data = given.get(key)
    return None if data is None else (place / key).text(data)


def _region_budget(data: Json, place: Place) -> float | None:
    if data is None:
        return None
    budget = float(place.number(data))
    if not math.isfinite(budget):
        raise place.error("the region's budget is out of range")
    return budget


def _count(value: ValuePattern, storage: str | None = None) -> int:
    """Tensors in a value, or those with this kind of storage."""
    if isinstance(value, tuple):
        return sum(_count(part, storage) for part in value)
    return int(isinstance(value, Tensor) and storage in (None, value.storage))


def _origin(data: Json, place: Place) -> Origin:
    given = place.object(data)
    texts = {key: _optional_text(given, key, place) for key in ("module", "type", "source", "code")}
    return Origin(texts["module"], texts["type"], texts["source"], texts["code"])


def _spec(data: Json, place: Place) -> Spec:
    given = place.object(data)
    shape = tuple(_dim(dim, place) for dim in place.array(place.field(given, "shape")))
    hint = given.get("hint")
    nbytes = place.integer(place.field(given, "nbytes"), 0)
    if "stride" in given:
        stride = tuple(_dim(dim, place) for dim in place.array(given["stride"]))
    else:
        stride = contiguous_stride([dim for dim in shape if isinstance(dim, int)])
    return Spec(
        shape=shape,
        stride=stride,
        dtype=place.text(place.field(given, "dtype")),
        device=place.text(given.get("device", DEFAULT_DEVICE)),
        nbytes=nbytes,
        storage_nbytes=place.integer(given.get("storage_nbytes", nbytes), 0),
        hint=None if hint is None else tuple(place.integer(size, 0, _LARGEST_SIZE) for size in place.array(hint)),
    )


def _dim(data: Json, place: Place) -> Dim:
    return data if isinstance(data, str) else place.integer(data, -_LARGEST_SIZE, _LARGEST_SIZE)
