"""Traces and plans as files: ``*.aot.json``, stable enough to commit, small enough to review.

Schema and version come first; a newer minor version is read with a note, another major one refused. Nothing in a file
is executed, nothing in it tells where or when it was made, and equal traces give equal bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from types import MappingProxyType

from aotcli.errors import OutputError, RecordError, VerificationError
from aotcli.ir.decode import Budget, graph_from_json
from aotcli.ir.document import MAJOR, MINOR, MOST_BYTES, Json, Place, parse, render
from aotcli.ir.encode import Tables, graph_to_json
from aotcli.ir.fields import from_json, to_json
from aotcli.ir.files import read_text, write_text
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition
from aotcli.ir.plan import Plan, plan_of
from aotcli.ir.privacy import anonymized, scrubbed, scrubbed_graph
from aotcli.ir.templates import TemplateReader
from aotcli.ir.torch_plan import check_torch_decision
from aotcli.ir.trace import Trace
from aotcli.ir.verify import verify_graph

TRACE_SCHEMA = "aotcli.trace"
PLAN_SCHEMA = "aotcli.plan"
_VERSION = f"{MAJOR}.{MINOR}"


def dump_trace(trace: Trace, *, source: bool = False, beside: Mapping[str, Json] = MappingProxyType({})) -> str:
    """`trace` as the text of a record; `beside` are objects that stand in it too, and that `load_trace` passes over.

    `source` keeps the text of source lines beside their numbers. Absolute paths are cut down to the file's name, and
    `trace.settings.anonymize` hashes names. Raises VerificationError where a graph cannot be written.
    """
    if trace.settings.anonymize:
        trace = anonymized(trace)
    tables = Tables()
    graphs = [graph_to_json(scrubbed_graph(graph), tables, source=source) for graph in trace.regions]
    header = to_json(scrubbed(replace(trace, regions=())))
    document: dict[str, Json] = {"schema": TRACE_SCHEMA, "schema_version": _VERSION, **beside}
    document.update(Place("").object(header))
    del document["regions"]  # it comes after the rest of the header
    if not trace.torch_decision:
        del document["torch_decision"]
    document["regions"] = [*graphs]
    document |= {"specs": tables.specs, "ops": tables.ops, "places": tables.places, "templates": tables.templates}
    return render(document)


def load_trace(text: str) -> Trace:
    """The trace in the text of a record; `load_trace(dump_trace(trace, source=True)) == trace`.

    A note in `Trace.notes` says so where a newer aotcli wrote the record. Raises RecordError where the text is damaged,
    cut short, no trace, or of a newer major version.
    """
    with _without_collection():
        document, note = parse(text, TRACE_SCHEMA)
        header: dict[str, Json] = {**document, "regions": []}
        trace = from_json(Trace, header, Place(""))
        graphs = _graphs(document, lenient=bool(note))
    for graph in graphs:
        try:
            verify_graph(graph)
        except VerificationError as error:
            raise RecordError(
                f"the record is damaged: {error.what}", why=error.why, fix="trace the model again"
            ) from None
    trace = replace(trace, regions=graphs, notes=(*trace.notes, note) if note else trace.notes)
    check_torch_decision(trace)
    return trace


def _graphs(document: Mapping[str, Json], *, lenient: bool) -> tuple[JointGraph, ...]:
    place = Place("regions")
    regions = place.array(Place("").field(document, "regions"))
    templates = TemplateReader(document, lenient=lenient).templates(document)
    budget = Budget()
    return tuple(graph_from_json(data, templates, budget, place / i) for i, data in enumerate(regions))


@contextmanager
def _without_collection() -> Generator[None]:
    """No garbage collection while many objects are built and none is dropped: it would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_trace(trace: Trace, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a record; source lines are kept if the capture was asked for them. ``.gz`` compresses.

    Raises OutputError where `path` holds somebody else's file (unless `force`) or cannot be written.
    """
    text = dump_trace(trace, source=trace.settings.with_source)
    if len(text) > MOST_BYTES:
        raise OutputError(
            f"the record of {trace.model.name} would be too large",
            why=f"aotcli reads records up to {MOST_BYTES >> 20} MiB",
            fix="trace a part of the model, or leave out --with-source",
        )
    write_text(text, path, force=force)


def read_trace(path: str | PathLike[str]) -> Trace:
    """The trace in a file, or on stdin for ``-``; raises RecordError as `load_trace` does."""
    return load_trace(read_text(path))


def dump_plan(trace: Trace, partitions: Sequence[Partition]) -> str:
    """The plan file of `partitions`, one for each region of `trace`, as text."""
    return plan_text(plan_of(trace, partitions))


def plan_text(plan: Plan) -> str:
    """A plan as the text of a plan file."""
    options: dict[str, Json] = dict(plan.options)
    document: dict[str, Json] = {"schema": PLAN_SCHEMA, "schema_version": _VERSION}
    document.update(Place("").object(to_json(scrubbed(plan))))
    document["options"] = options
    return render(document)


def load_plan(text: str) -> Plan:
    """The plan in the text of a plan file; raises RecordError as `load_trace` does."""
    document, note = parse(text, PLAN_SCHEMA)
    options = (Place("") / "options").object(document.get("options", {}))
    pairs: list[Json] = [[key, value] for key, value in options.items()]
    plan = from_json(Plan, {**document, "options": pairs}, Place(""))
    return replace(plan, notes=(*plan.notes, note)) if note else plan


def write_plan(
    trace: Trace, partitions: Sequence[Partition], path: str | PathLike[str], *, force: bool = False
) -> None:
    """Write a plan file; raises OutputError as `write_trace` does."""
    write_text(dump_plan(trace, partitions), path, force=force)


def read_plan(path: str | PathLike[str]) -> Plan:
    """The plan in a file, or on stdin for ``-``."""
    return load_plan(read_text(path))
