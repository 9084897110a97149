"""A validation as JSON, for programs: schema "aotcli.validation", additive changes only within a major version."""

from __future__ import annotations

import json
import math
from typing import Any

from aotcli.ir.outcome import CheckResult, Validation

SCHEMA = "aotcli.validation"
SCHEMA_VERSION = "1.0"


def render_validation_json(validation: Validation) -> str:
    """Bytes are integers, times are seconds, errors are relative; `measured` is "inf" where nothing finite was."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": validation.model,
        "spec": validation.spec,
        "torch": validation.torch,
        "device": validation.device,
        "device_name": validation.device_name,
        "backend": validation.backend,
        "level": validation.level,
        "seed": validation.seed,
        "steps": validation.steps,
        "rng": validation.rng,
        "train": validation.train,
        "loss": validation.loss,
        "reference": validation.reference,
        "exit_code": validation.exit_code,
        "notes": list(validation.notes),
        "strategies": [
            {
                "strategy": strategy.label,
                "passed": strategy.proven,
                "notes": list(strategy.notes),
                "checks": [_check(check) for check in strategy.checks],
            }
            for strategy in validation.strategies
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "check": check.check,
        "outcome": check.outcome.value,
        "measured": _number(check.measured),
        "tolerance": _number(check.tolerance),
        "unit": check.unit.value if check.unit is not None else None,
        "reason": check.reason,
        "details": list(check.details),
    }


def _number(value: float | None) -> float | int | str | None:
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) else value
