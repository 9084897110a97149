"""A difference as JSON, for programs: schema "aotcli.diff", additive changes only within a major version.

Bytes and FLOPs are integers; changes are right minus left. Rows are in the order of the text view, all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aotcli.ir.difference import (
    Confidence,
    Difference,
    FateChange,
    NodeSide,
    RegionDifference,
    Rewrite,
    RewriteSide,
    SavedChange,
    SavedSide,
    SideInfo,
    ValueChange,
)

SCHEMA = "aotcli.diff"
FOLDERS_SCHEMA = "aotcli.diff-folders"
SCHEMA_VERSION = "1.0"


def render_diff_json(difference: Difference) -> str:
    """One difference as an object of schema "aotcli.diff"."""
    return _text(diff_document(difference))


def render_folders_json(differences: Mapping[str, Difference], missing: Sequence[tuple[str, str]]) -> str:
    """Differences by name as an object of schema "aotcli.diff-folders"; `missing` are (name, folder without it)."""
    return _text(
        {
            "schema": FOLDERS_SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "missing": [{"name": name, "folder": folder} for name, folder in missing],
            "differences": {name: diff_document(each) for name, each in differences.items()},
        }
    )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def diff_document(difference: Difference) -> dict[str, Any]:
    """A difference as plain data."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "left": _info(difference.left),
        "right": _info(difference.right),
        "is_empty": difference.is_empty,
        "same_graph": difference.same_graph,
        "same_saved": difference.same_saved,
        "environment": [{"what": e.what, "left": e.left, "right": e.right} for e in difference.environment],
        "saved_delta_bytes": difference.saved_delta_bytes,
        "graph_bytes": difference.graph_bytes,
        "decision_bytes": difference.decision_bytes,
        "yardstick": difference.yardstick,
        "unknown": list(difference.unknown),
        "regions": [_region(each) for each in difference.regions],
        "confidence": _confidence(difference.confidence),
        "saved": [_saved(row) for row in difference.saved],
        "fates": [_fate(row) for row in difference.fates],
        "rewrites": [_rewrite(row) for row in difference.rewrites],
        "values": [_value(row) for row in difference.values],
    }


def _info(info: SideInfo) -> dict[str, Any]:
    totals = info.totals
    return {
        "name": info.name,
        "model": info.model,
        "strategy": info.strategy,
        "torch": info.torch,
        "device": info.device,
        "level": info.level,
        "saved_bytes": totals.saved_bytes,
        "saved_tensors": totals.saved_tensors,
        "saved_input_bytes": totals.saved_input_bytes,
        "nodes": totals.nodes,
        "parameters": totals.parameters,
        "forward_ops": totals.forward_ops,
        "backward_ops": totals.backward_ops,
        "recomputed_ops": totals.recomputed_ops,
        "forward_flops": totals.forward_flops,
        "backward_flops": totals.backward_flops,
        "recompute_flops": totals.recompute_flops,
        "peak_bytes": totals.peak_bytes,
    }


def _region(region: RegionDifference) -> dict[str, Any]:
    return {
        "left": region.left or None,
        "right": region.right or None,
        "same_graph": region.same_graph,
        "left_nodes": region.left_nodes,
        "right_nodes": region.right_nodes,
        "confidence": _confidence(region.confidence),
    }


def _confidence(found: Confidence) -> dict[str, int]:
    return {
        "pairs": found.pairs,
        "exact": found.exact,
        "wired": found.wired,
        "near": found.near,
        "aligned": found.aligned,
        "changed": found.changed,
        "left_unpaired": found.left_unpaired,
        "right_unpaired": found.right_unpaired,
    }


def _saved(row: SavedChange) -> dict[str, Any]:
    return {
        "change": row.growth.value,
        "altered": row.altered,
        "delta_bytes": row.delta_bytes,
        "count": row.count,
        "cause": row.cause.value,
        "tie": row.tie,
        "region": row.region,
        "left": _saved_side(row.left),
        "right": _saved_side(row.right),
    }


def _saved_side(side: SavedSide | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "fate": side.fate.value,
        "nbytes": side.nbytes,
        "module": side.module,
        "what": side.what,
        "shape": list(side.shape),
        "dtype": side.dtype,
        "source": side.source,
        "rule": side.rule,
        "reason": side.reason,
        "names": list(side.names),
    }


def _fate(row: FateChange) -> dict[str, Any]:
    return {
        "count": row.count,
        "flip": row.is_flip,
        "move": row.is_move,
        "cause": row.cause.value,
        "region": row.region,
        "left": {"fate": row.left_fate.value, **_nodes(row.left)},
        "right": {"fate": row.right_fate.value, **_nodes(row.right)},
    }


def _nodes(side: NodeSide) -> dict[str, Any]:
    return {
        "module": side.module,
        "what": side.what,
        "source": side.source,
        "nbytes": side.nbytes,
        "names": list(side.names),
    }


def _rewrite(row: Rewrite) -> dict[str, Any]:
    return {
        "count": row.count,
        "whole": row.whole,
        "region": row.region,
        "left": _ops(row.left),
        "right": _ops(row.right),
    }


def _ops(side: RewriteSide) -> dict[str, Any] | None:
    if side.empty:
        return None
    return {
        "module": side.module,
        "forward": dict(side.forward),
        "backward": dict(side.backward),
        "flops": side.flops,
        "source": side.source,
        "names": list(side.names),
    }


def _value(row: ValueChange) -> dict[str, Any]:
    return {
        "count": row.count,
        "aspect": row.aspect.value,
        "region": row.region,
        "left": {"value": list(row.left_value), **_nodes(row.left)},
        "right": {"value": list(row.right_value), **_nodes(row.right)},
    }
