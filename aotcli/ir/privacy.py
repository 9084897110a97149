"""What a record must not tell: absolute paths always, names where the user asks (`--anonymize`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from aotcli.ir.joint import Arg, Const, JointGraph, Mapping, Node, Slice, Symbol
from aotcli.ir.tensor import OpaqueSpec, Value
from aotcli.ir.trace import GraphBreak, TorchRegion, Trace

T = TypeVar("T")

_END = r"\s/\\'\"`:;,()<>\[\]{}|"
_ABSOLUTE_PATH = re.compile(rf"(?<![\w./])(?:file:)?/+(?:[^{_END}]+/+)+(?=[^{_END}])|\b[A-Za-z]:\\(?:[^{_END}]+\\)*")
_HASHED = re.compile(r"anon_[0-9a-f]{8}")
_NUMBER = re.compile(r"\d+", re.ASCII)


def without_paths(text: str) -> str:
    """`text` with every absolute path cut down to its last part: ``/home/me/net.py:3`` becomes ``net.py:3``."""
    while "/" in text or "\\" in text:
        shorter = _ABSOLUTE_PATH.sub("", text)
        if shorter == text:
            break
        text = shorter  # what is left may be a path in its turn
    return text


def has_absolute_path(text: str) -> bool:
    """Whether some absolute path stands in `text`."""
    return _ABSOLUTE_PATH.search(text) is not None


def scrubbed(data: T) -> T:
    """A dataclass of texts, numbers, tuples and dataclasses with absolute paths cut down in every text."""
    return _map_texts(data, without_paths)


def scrubbed_graph(graph: JointGraph) -> JointGraph:
    """`graph` without absolute paths in source locations and symbols' sources; itself where it has none."""
    sources = {node.source for node in graph.nodes if node.source is not None}
    sources = {source for source in sources if without_paths(source) != source}
    nested = tuple((name, scrubbed_graph(inner)) for name, inner in graph.subgraphs)
    symbols = tuple(_map_texts(symbol, without_paths) for symbol in graph.symbols)
    if not sources and (symbols, nested) == (graph.symbols, graph.subgraphs):
        return graph
    nodes = [
        replace(node, source=without_paths(node.source)) if node.source is not None and node.source in sources else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes), symbols=symbols, subgraphs=nested)


def _map_texts(data: T, change: Callable[[str], str]) -> T:
    """`data` with `change` applied to every string in it."""
    mapped: Any = data
    if isinstance(data, str):
        mapped = change(data)
    elif isinstance(data, tuple):
        parts: tuple[Any, ...] = mapped
        mapped = tuple([_map_texts(part, change) for part in parts])
    elif is_dataclass(data) and not isinstance(data, type):
        mapped = replace(data, **{f.name: _map_texts(getattr(data, f.name), change) for f in fields(data) if f.init})
    return mapped


# Anonymous records.


def hashed(name: str) -> str:
    """A name's stand-in, the same in every record: ``anon_`` and 8 hexadecimal digits of its SHA-256.

    Somebody who guesses the name can confirm the guess. A stand-in stays as it is, so hashing twice changes nothing.
    """
    if not name or _HASHED.fullmatch(name):
        return name
    return f"anon_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def hashed_path(path: str) -> str:
    """A module path with its names hashed; the numbers of repeated layers stay."""
    return ".".join(part if _NUMBER.fullmatch(part) else hashed(part) for part in path.split("."))


def hashed_source(source: str) -> str:
    """``file:line`` with the file hashed."""
    file, colon, line = source.rpartition(":")
    return f"{hashed(file)}:{line}" if colon and _NUMBER.fullmatch(line) else hashed(source)


def _hashed_name_first(text: str) -> str:
    """``tokens i64[8,1024]`` with the name hashed."""
    name, space, rest = text.partition(" ")
    return f"{hashed_path(name)}{space}{rest}"


def _hashed_name_last(text: str) -> str:
    """``buffer bn.running_mean`` with the name hashed."""
    kind, space, name = text.partition(" ")
    return f"{kind}{space}{hashed_path(name)}"


def anonymized(trace: Trace) -> Trace:
    """`trace` with the names of the model, its modules, parameters, inputs, classes and files hashed.

    Ops, shapes, dtypes and bytes stay: they are what the record is for. Free texts (reasons of breaks, guards, notes)
    are hashed whole.
    """
    model = replace(
        trace.model,
        name=hashed(trace.model.name),
        spec=hashed(trace.model.spec),
        inputs=tuple(_hashed_name_first(text) for text in trace.model.inputs),
    )
    settings = replace(
        trace.settings,
        inputs=tuple(hashed(text) for text in trace.settings.inputs),
        overrides=tuple((hashed(key), hashed(value)) for key, value in trace.settings.overrides),
    )
    return replace(
        trace,
        model=model,
        settings=settings,
        regions=tuple(_anonymized_graph(graph) for graph in trace.regions),
        breaks=tuple(_anonymized_break(each) for each in trace.breaks),
        mutations=tuple(_hashed_name_last(text) for text in trace.mutations),
        side_effects=tuple(hashed(text) for text in trace.side_effects),
        hooks=tuple(hashed(text) for text in trace.hooks),
        guards=tuple(hashed(text) for text in trace.guards),
        notes=tuple(hashed(text) for text in trace.notes),
        torch_decision=tuple(_anonymized_decision(each) for each in trace.torch_decision),
    )


def _anonymized_decision(each: TorchRegion) -> TorchRegion:
    return replace(each, notes=tuple(hashed(text) for text in each.notes), failure=hashed(each.failure))


def _anonymized_break(each: GraphBreak) -> GraphBreak:
    return GraphBreak(hashed(each.reason), None if each.source is None else hashed_source(each.source))


def _anonymized_graph(graph: JointGraph) -> JointGraph:
    return replace(
        graph,
        nodes=tuple(_anonymized_node(node) for node in graph.nodes),
        symbols=tuple(_anonymized_symbol(symbol) for symbol in graph.symbols),
        subgraphs=tuple((name, _anonymized_graph(inner)) for name, inner in graph.subgraphs),
    )


def _anonymized_symbol(symbol: Symbol) -> Symbol:
    return replace(symbol, source=hashed(symbol.source))


def _anonymized_node(node: Node) -> Node:
    return replace(
        node,
        args=tuple(_anonymized_arg(arg) for arg in node.args),
        kwargs=tuple((key, _anonymized_arg(arg)) for key, arg in node.kwargs),
        value=_anonymized_value(node.value),
        module=None if node.module is None else hashed_path(node.module),
        module_type=None if node.module_type is None else hashed(node.module_type),
        source=None if node.source is None else hashed_source(node.source),
        code=None,
        origin=None if node.origin is None else hashed_path(node.origin),
    )


def _anonymized_arg(arg: Arg) -> Arg:
    """Constants of kind "other" are class names of the user's."""
    if isinstance(arg, Const):
        return Const(arg.kind, hashed(arg.text)) if arg.kind == "other" else arg
    if isinstance(arg, tuple):
        return tuple(_anonymized_arg(part) for part in arg)
    if isinstance(arg, Slice):
        return Slice(_anonymized_arg(arg.start), _anonymized_arg(arg.stop), _anonymized_arg(arg.step))
    if isinstance(arg, Mapping):
        return Mapping(tuple((key, _anonymized_arg(part)) for key, part in arg.items))
    return arg


def _anonymized_value(value: Value) -> Value:
    if isinstance(value, OpaqueSpec) and value.kind != "graph":
        return replace(value, type_name=hashed(value.type_name))
    if isinstance(value, tuple):
        return tuple(_anonymized_value(part) for part in value)
    return value
