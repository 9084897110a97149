"""A front as JSON of schema "aotcli.pareto": raw integers, nothing rounded."""

from __future__ import annotations

import json

from aotcli.ir.pareto import ParetoFront, ParetoPoint
from aotcli.ir.trace import Trace

SCHEMA = "aotcli.pareto"
SCHEMA_VERSION = "1.0"


def render_pareto_json(trace: Trace, front: ParetoFront) -> str:
    """One object, ended by a line feed."""
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": trace.model.name,
        "torch": trace.environment.torch,
        "device": trace.environment.device,
        "level": trace.settings.level,
        "region": front.region,
        "fingerprint": trace.regions[front.region].fingerprint,
        "cost_unit": front.unit,
        "pricing": front.pricing,
        "forward_cost": front.forward_cost,
        "eager_saved_bytes": front.eager_bytes,
        "unknown_flops": list(front.unknown),
        "points": [_point(point) for point in front.points],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _point(point: ParetoPoint) -> dict[str, object]:
    return {
        "kind": point.kind.value,
        "strategy": point.label,
        "saved_bytes": point.nbytes,
        "saved_tensors": point.tensors,
        "recompute_cost": point.cost,
        "recompute_cost_bound": point.bound,
        "recompute_flops": point.recompute_flops,
        "recomputed": point.recomputed,
        "peak_bytes": point.peak_bytes,
    }
