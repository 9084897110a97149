"""Plans as JSON, for programs: schema "aotcli.partition", additive changes only within a major version.

Bytes and FLOPs are integers. `saved_bytes` is of activations by unique storage; `nbytes` of a saved value is 0 where an
earlier value of the list has the same storage. `id` is the position in the fingerprinted order: with `fingerprint` it
names a value whatever the nodes are called.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aotcli.analysis.summary import Plan
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition, SavedValue
from aotcli.ir.tensor import TensorSpec
from aotcli.ir.trace import Trace

SCHEMA = "aotcli.partition"
COMPARISON_SCHEMA = "aotcli.comparison"
SCHEMA_VERSION = "1.0"


def render_partition_json(trace: Trace, plans: Sequence[Plan]) -> str:
    """One plan as an object of schema "aotcli.partition"; several as one of "aotcli.comparison" that lists them."""
    documents = [partition_document(trace, plan) for plan in plans]
    document: dict[str, Any] = documents[0]
    if len(documents) > 1:
        document = {"schema": COMPARISON_SCHEMA, "schema_version": SCHEMA_VERSION, "plans": documents}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def partition_document(trace: Trace, plan: Plan) -> dict[str, Any]:
    """A plan as plain data."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": trace.model.name,
        "torch": trace.environment.torch,
        "device": trace.environment.device,
        "level": trace.settings.level,
        "strategy": plan.strategy,
        "options": {key: _plain(value) for key, value in plan.options.items()},
        "eager_saved_bytes": trace.eager.saved_bytes if trace.eager is not None else None,
        "regions": [_region(graph, partition) for graph, partition in zip(trace.regions, plan.partitions, strict=True)],
    }


def _region(graph: JointGraph, partition: Partition) -> dict[str, Any]:
    region: dict[str, Any] = {
        "name": graph.name,
        "fingerprint": partition.fingerprint,
        "joint_nodes": len(graph.nodes),
        "forward_ops": len(partition.forward_nodes),
        "backward_ops": len(partition.backward_nodes),
        "forward_flops": partition.forward_flops,
        "backward_flops": partition.backward_flops,
        "recompute_flops": partition.recompute_flops,
        "unknown_flops": list(partition.unknown_flops),
        "peak_bytes": partition.peak_bytes,
        "saved_bytes": partition.saved_bytes,
        "saved_input_bytes": partition.saved_input_bytes,
        "saved_output_bytes": partition.saved_output_bytes,
    }
    if partition.cut_value is not None:
        region["cut_value"] = partition.cut_value
    region["recomputed"] = list(partition.recomputed)
    region["saved"] = [_saved(value) for value in partition.saved]
    return region


def _saved(value: SavedValue) -> dict[str, Any]:
    tensor = value.value if isinstance(value.value, TensorSpec) else None
    return {
        "id": value.id,
        "name": value.name,
        "op": value.op,
        "shape": list(tensor.shape) if tensor is not None else None,
        "dtype": tensor.dtype if tensor is not None else None,
        "nbytes": value.nbytes,
        "storage": value.storage,
        "kind": value.kind.value,
        "category": value.category.value,
        "module": value.module,
        "source": value.source,
        "rule": value.reason.rule,
        "reason": value.reason.text,
        "users": list(value.users),
        "is_input": value.is_input,
    }


def _plain(value: object) -> Any:
    """An option's value as JSON; what JSON has no type for as its text."""
    if isinstance(value, tuple | list | frozenset | set):
        items = [_plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, frozenset | set) else items
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
