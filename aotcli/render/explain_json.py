"""Explanations as JSON, for programs: schema "aotcli.explanation", additive changes only within a major version.

Bytes and FLOPs are integers. An explanation is of `count` values that are alike; its details are those of the first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aotcli.analysis.summary import Plan
from aotcli.ir.explanation import Chain, Change, Explanation, Fact, Flip, Place, Reader, Weight
from aotcli.ir.policy import PolicyRule
from aotcli.ir.trace import Trace
from aotcli.render.explain_words import fact_text

SCHEMA = "aotcli.explanation"
SCHEMA_VERSION = "1.0"


def render_explain_json(
    trace: Trace,
    plan: Plan,
    explanations: Sequence[Explanation],
    change: Change | None,
    wishes: Sequence[PolicyRule],
) -> str:
    """One object: what was planned, the wishes with what they change, and the explanations."""
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": trace.model.name,
        "torch": trace.environment.torch,
        "device": trace.environment.device,
        "level": trace.settings.level,
        "strategy": plan.label,
        "saved_bytes": plan.saved_bytes,
        "wishes": [_rule(rule) for rule in wishes],
        "change": None if change is None else _change(change),
        "explanations": [_explanation(each) for each in explanations],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _explanation(each: Explanation) -> dict[str, Any]:
    return {
        "region": each.region,
        "fate": each.fate.value,
        **_place(each.place),
        "modules": each.modules,
        "count": each.count,
        "names": list(each.names),
        "shape": list(each.shape),
        "dtype": each.dtype or None,
        "nbytes": each.nbytes,
        "total_bytes": each.total_bytes,
        "category": each.category.value,
        "saved_as": list(each.saved_as),
        "rule": None if each.reason is None else each.reason.rule,
        "reason": None if each.reason is None else each.reason.text,
        "facts": [_fact(fact) for fact in each.facts],
        "without_rule": each.without_rule or None,
        "weight": None if each.weight is None else _weight(each.weight),
        "readers": [_reader(reader) for reader in each.readers],
        "chain": None if each.chain is None else _chain(each.chain),
        "flip": None if each.flip is None else _flip(each.flip),
        "leads_to": [_place(place) for place in each.leads_to],
        "notes": list(each.notes),
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "what": place.what,
        "op": place.target,
        "module": place.module,
        "source": place.source,
    }


def _fact(fact: Fact) -> dict[str, Any]:
    amounts = [{"value": amount.value, "quantity": amount.quantity.value} for amount in fact.amounts]
    return {"text": fact_text(fact), "amounts": amounts}


def _weight(weight: Weight) -> dict[str, Any]:
    return {
        "weight": weight.weight,
        "nbytes": weight.nbytes,
        "distance": weight.distance,
        "exponent": weight.exponent,
        "doubled": weight.doubled,
        "free": weight.free,
    }


def _reader(reader: Reader) -> dict[str, Any]:
    via = [place.name for place in reader.via]
    return {**_place(reader.place), "via": via, "gradient_of": reader.gradient_of}


def _chain(chain: Chain) -> dict[str, Any]:
    guess = chain.estimate
    return {
        "ops": [_place(place) for place in chain.ops],
        "views": chain.views,
        "sources": [
            {
                **_place(source.place),
                "kind": source.kind.value,
                "nbytes": source.nbytes,
                "reason": source.reason,
                "newly_saved": source.newly_saved,
            }
            for source in chain.sources
        ],
        "flops": chain.flops,
        "unknown_flops": list(chain.unknown_flops),
        "moved_bytes": chain.moved_bytes,
        "estimate": None
        if guess is None
        else {
            "seconds": guess.seconds,
            "share": guess.share,
            "assuming": {"flops_per_s": guess.flops_per_s, "bytes_per_s": guess.bytes_per_s, "fused": False},
        },
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "possible": flip.change is not None,
        "obstacle": flip.obstacle or None,
        "patterns": list(flip.patterns),
        "rules": [_rule(rule) for rule in flip.rules],
        "change": None if flip.change is None else _change(flip.change),
    }


def _rule(rule: PolicyRule) -> dict[str, Any]:
    own = {} if rule.module is None else {"submodules": rule.submodules}
    return {"action": rule.action.value, **dict(rule.texts), **own, **dict(rule.sizes)}


def _change(change: Change) -> dict[str, Any]:
    totals = {
        when: {
            "saved_bytes": each.saved_bytes,
            "peak_bytes": each.peak_bytes,
            "recompute_flops": each.recompute_flops,
            "recomputed_ops": each.recomputed_ops,
            "cut_value": each.cut_value,
        }
        for when, each in (("before", change.before), ("after", change.after))
    }
    rows = [
        {
            "before": row.before.value,
            "after": row.after.value,
            "count": row.count,
            "nbytes": row.nbytes,
            "module": row.module,
            "what": row.what,
            "shape": list(row.shape),
            "dtype": row.dtype,
            "names": list(row.names),
        }
        for row in change.rows
    ]
    return {**totals, "freed_bytes": change.freed_bytes, "rows": rows, "notes": list(change.notes)}
