"""Equal findings of repeated layers as one: twelve blocks that save a gelu make one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from aotcli.analysis.layers import layer_pattern, module_names
from aotcli.analysis.lint._contract import Hit
from aotcli.analysis.lint._rules_for import merge_rules
from aotcli.ir.finding import Finding, RuleInfo


def fold_hits(rule: RuleInfo, hits: Iterable[Hit]) -> tuple[Finding, ...]:
    """Findings of one rule, most bytes first, then in the graph's order."""
    groups: dict[tuple[object, ...], list[Hit]] = {}
    for hit in hits:
        groups.setdefault(_key(hit), []).append(hit)
    return tuple(sorted((_finding(rule, group) for group in groups.values()), key=lambda finding: -finding.nbytes))


def _key(hit: Hit) -> tuple[object, ...]:
    # Modules of one class are one owner: the two layer norms of a block. What the first layer's value could be made
    # from is often another than in the others; it is one finding all the same.
    owner = hit.module_type or (None if hit.module is None else layer_pattern(hit.module))
    text = (hit.detail, hit.source) if hit.shape is None else ()
    return (hit.region, owner, hit.what, hit.shape, hit.dtype, hit.remedy, hit.places, text)


def _finding(rule: RuleInfo, group: list[Hit]) -> Finding:
    first = group[0]
    sources = list(dict.fromkeys(hit.source for hit in group if hit.source))
    return Finding(
        rule=rule.code,
        name=rule.name,
        region=first.region,
        values=tuple(value for hit in group for value in hit.values),
        module="" if first.module is None and not first.values else module_names([hit.module for hit in group]),
        what=first.what,
        shape=first.shape,
        dtype=first.dtype,
        source=sources[0] if sources else None,
        sources=len(sources),
        count=len(group),
        nbytes=sum(hit.nbytes for hit in group),
        detail=Counter(hit.detail for hit in group).most_common(1)[0][0],
        remedy=first.remedy,
        places=first.places,
        rules=merge_rules(rule for hit in group for rule in hit.rules),
    )
