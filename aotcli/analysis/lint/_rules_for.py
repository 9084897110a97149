"""Policy rules (aotcli/ir/policy.py) under which a saved tensor is computed again in the backward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aotcli.analysis.layers import MODEL_ITSELF, SavedTensor, layer_pattern
from aotcli.analysis.lint._chain import Chain, is_small
from aotcli.analysis.lint._region import GETITEM, PlannedRegion
from aotcli.analysis.op_names import storage_maker
from aotcli.ir.joint import Node
from aotcli.ir.policy import Action, PolicyRule
from aotcli.ir.tensor import tensor_leaves


def recompute_rules(region: PlannedRegion, tensor: SavedTensor, chain: Chain) -> tuple[PolicyRule, ...]:
    """A rule for the tensor, and one for each large value between what the backward has and it."""
    maker = storage_maker(region.graph, tensor.values[0].name)
    rules = [_rule(region, maker, tensor.spec.storage_nbytes)]
    rules += [_rule(region, node, _largest(node)) for node in chain.ops if not is_small(node, tensor)]
    return merge_rules(rules)


def _largest(node: Node) -> int:
    return max(leaf.storage_nbytes for leaf in tensor_leaves(node.value))


def _rule(region: PlannedRegion, node: Node, nbytes: int) -> PolicyRule:
    made_by = region.reads(node)[0] if node.target == GETITEM else node
    module = None if node.module is None else layer_pattern(node.module) or MODEL_ITSELF
    return PolicyRule(
        Action.RECOMPUTE,
        module=module,
        submodules=module in (None, MODEL_ITSELF),
        op=made_by.packet,
        line=node.source,
        min_bytes=nbytes,
    )


def merge_rules(rules: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """The rules without repetition; of those that differ in size alone, the one that begins at the smallest."""
    merged: dict[PolicyRule, PolicyRule] = {}
    for rule in rules:
        key = replace(rule, min_bytes=0)
        other = merged.setdefault(key, rule)
        if (rule.min_bytes or 0) < (other.min_bytes or 0):
            merged[key] = rule
    return tuple(merged.values())
