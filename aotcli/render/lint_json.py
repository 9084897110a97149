"""Findings as JSON, for programs: schema "aotcli.lint", additive changes only within a major version."""

from __future__ import annotations

import json
from typing import Any

from aotcli.ir.finding import Finding, LintReport
from aotcli.ir.policy import PolicyRule
from aotcli.ir.trace import Trace

SCHEMA = "aotcli.lint"
SCHEMA_VERSION = "1.0"


def render_lint_json(trace: Trace, report: LintReport) -> str:
    """Bytes and FLOPs are integers. `values` are node names of the finding's `region`; `source` is ``file:line``."""
    policy = report.policy
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": report.model,
        "torch": trace.environment.torch,
        "device": trace.environment.device,
        "level": trace.settings.level,
        "strategy": report.strategy,
        "rules": [rule.code for rule in report.rules],
        "saved_bytes": report.saved_bytes,
        "at_stake_bytes": report.nbytes,
        "min_bytes": report.min_bytes,
        "small": {"count": report.small, "nbytes": report.small_bytes},
        "findings": [_finding(finding) for finding in report.findings],
        "policy": None
        if policy is None
        else {
            "saved_bytes": policy.saved_bytes,
            "recompute_flops": policy.recompute_flops,
            "rules": [_policy_rule(rule) for rule in policy.rules],
        },
        "notes": list(report.notes),
        "exit_code": report.exit_code,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "name": finding.name,
        "region": finding.region,
        "values": list(finding.values),
        "module": finding.module,
        "what": finding.what,
        "shape": list(finding.shape) if finding.shape is not None else None,
        "dtype": finding.dtype or None,
        "source": finding.source,
        "sources": finding.sources,
        "count": finding.count,
        "nbytes": finding.nbytes,
        "detail": finding.detail,
        "places": [{"what": place.what, "source": place.source} for place in finding.places],
        "remedy": {"text": finding.remedy.text, "lines": list(finding.remedy.lines)},
        "policy_rules": [_policy_rule(rule) for rule in finding.rules],
    }


def _policy_rule(rule: PolicyRule) -> dict[str, Any]:
    given: dict[str, Any] = {**dict(rule.texts), **dict(rule.sizes), "action": rule.action.value}
    if rule.module is not None and not rule.submodules:
        given["submodules"] = False
    return given
