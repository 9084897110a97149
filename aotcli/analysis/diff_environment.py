"""What was traced differently, before any graph is looked at: software, device, level, mode, inputs, settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from aotcli.ir.difference import EnvironmentChange
from aotcli.ir.trace import CaptureSettings, Trace

# Settings that are told as what came of them, and those that change no graph.
_ELSEWHERE = frozenset({"device", "dtype", "level", "loss", "train", "tensors", "inputs", "overrides"})
_WITHOUT_EFFECT = frozenset({"with_source", "anonymize", "with_torch"})
_MOST_LISTED = 4
_IN_PLAN_FILES = frozenset({"torch", "device", "level"})


def environment_changes(left: Trace, right: Trace, *, brief: bool = False) -> tuple[EnvironmentChange, ...]:
    """What differs, the most telling first. Names of models and files are no environment. `brief` looks only at what
    a plan file tells."""
    found = zip(_facts(left), _facts(right), strict=True)
    changes = [EnvironmentChange(what, mine, other) for (what, mine), (_, other) in found if mine != other]
    if brief:
        return tuple(change for change in changes if change.what in _IN_PLAN_FILES)
    return (*changes, *_override_changes(left, right), *_symbol_changes(left, right))


def _facts(trace: Trace) -> Iterator[tuple[str, str]]:
    environment, settings = trace.environment, trace.settings
    yield "torch", environment.torch
    yield "device", environment.device
    yield "device name", environment.device_name or "unknown"
    yield "CUDA", environment.cuda or "none"
    yield "level", settings.level
    yield "mode", "train" if trace.train else "eval"
    yield "loss", "inside" if trace.loss else "outside"
    yield "tensors", trace.tensors
    yield "parameter dtype", "/".join(trace.model.dtypes) or "none"
    yield "inputs", _listed(trace.model.inputs) or "none"
    yield "graph breaks", str(len(trace.breaks))
    yield "mutated", _listed(trace.mutations) or "nothing"
    for each in dataclasses.fields(CaptureSettings):
        if each.name not in _ELSEWHERE | _WITHOUT_EFFECT:
            value = getattr(settings, each.name)
            yield each.name, "none" if value is None else str(value)


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MOST_LISTED} more" if len(texts) > _MOST_LISTED else ""
    return ", ".join(texts[:_MOST_LISTED]) + more


def _override_changes(left: Trace, right: Trace) -> list[EnvironmentChange]:
    mine, other = dict(left.settings.overrides), dict(right.settings.overrides)
    names = sorted({*mine, *other})
    return [
        EnvironmentChange(name, mine.get(name, "default"), other.get(name, "default"))
        for name in names
        if mine.get(name) != other.get(name)
    ]


def _symbol_changes(left: Trace, right: Trace) -> list[EnvironmentChange]:
    """Symbolic sizes that were traced at another number: the graph is the same, its bytes are not."""
    mine, other = ({s.name: s.hint for graph in side.regions for s in graph.symbols} for side in (left, right))
    return [
        EnvironmentChange(f"symbol {name}", str(mine[name]), str(other[name]))
        for name in sorted(mine.keys() & other.keys())
        if mine[name] != other[name]
    ]
