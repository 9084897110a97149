"""A check as JSON, for programs: schema "aotcli.check", additive changes only within a major version.

Bytes and FLOPs are integers. Contributors of a breach add up to its growth where it grew, and to the figure itself
where it did not; those of a forbidden op count nodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aotcli.ir.check import Breach, CheckRun, Contributor, FigureBreach, Figures, Limit, ModelCheck, OpBreach, Quantity
from aotcli.ir.difference import EnvironmentChange
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_words import breach_text, tolerance_text

SCHEMA = "aotcli.check"
SCHEMA_VERSION = "1.0"


def render_check_json(run: CheckRun) -> str:
    """The whole run as one object."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "exit_code": run.exit_code,
        "models": [_model(check) for check in run.models],
        "orphans": list(run.orphans),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _model(check: ModelCheck) -> dict[str, Any]:
    failure = check.failure
    return {
        "name": check.name,
        "model": check.model.spec,
        "strategy": check.model.strategy,
        "verdict": check.verdict.value.lower(),
        "exit_code": check.exit_code,
        "torch": check.torch,
        "device": check.device,
        "level": check.level,
        "baseline": check.baseline,
        "accepted_for": check.reason,
        "new_baseline": check.written,
        "limits": {
            "figures": [_limit(limit) for limit in check.model.limits.figures],
            "forbid_ops": list(check.model.limits.forbid_ops),
            "structure": check.model.limits.structure.value,
            "strict_env": check.model.limits.strict_env,
        },
        "before": _figures(check.before),
        "now": _figures(check.now),
        "replanned": _figures(check.replanned),
        "structure": check.structure.value if check.structure is not None else None,
        "environment": _changes(check.environment),
        "settings": _changes(check.settings),
        "breaches": [_breach(breach) for breach in check.breaches],
        "gains": [{"quantity": gain.quantity.value, "before": gain.before, "now": gain.now} for gain in check.gains],
        "graph_changes": structure_lines(check),
        "notes": list(check.notes),
        "failure": {"what": failure.what, "why": failure.why, "fix": failure.fix} if failure is not None else None,
        "accept": check.accept_command,
        "look": check.look_command,
    }


def _limit(limit: Limit) -> dict[str, Any]:
    growth = None if limit.growth is None else tolerance_text(limit.quantity, limit.growth)
    return {"quantity": limit.quantity.value, "max": limit.most, "growth": growth}


def _figures(figures: Figures | None) -> dict[str, int] | None:
    return None if figures is None else {quantity.value: figures.of(quantity) for quantity in Quantity}


def _changes(changes: Sequence[EnvironmentChange]) -> list[dict[str, str]]:
    return [{"what": change.what, "before": change.left, "now": change.right} for change in changes]


def _breach(breach: Breach) -> dict[str, Any]:
    document: dict[str, Any] = {"rule": breach.rule, "text": breach_text(breach)}
    if isinstance(breach, FigureBreach):
        document |= {"before": breach.before, "now": breach.now, "allowed": breach.allowed, "grew": breach.grew}
    elif isinstance(breach, OpBreach):
        document |= {"before": breach.before, "now": breach.count, "allowed": 0, "op": breach.op}
    else:
        document |= {"demanded": breach.demanded.value, "found": breach.found.value, "first": breach.first}
    document["contributors"] = [_contributor(row) for row in breach.contributors]
    return document


def _contributor(row: Contributor) -> dict[str, Any]:
    return {
        "amount": row.amount,
        "count": row.count,
        "module": row.module,
        "what": row.what,
        "shape": list(row.shape),
        "dtype": row.dtype,
        "source": row.source,
        "gone": row.gone,
    }
