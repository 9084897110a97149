"""Check: the graph that was compiled is the one that `aotcli partition` shows, and so is the plan.

What is shown was captured on fake tensors; what runs was traced from the real model. Fingerprints tell whether they
are one graph. Whose a tensor is (parameter, buffer or input) is known to the capture alone and is left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from aotcli.ir.fingerprint import canonical_order, fingerprint
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind
from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.ir.tensor import TensorSpec, tensor_leaves
from aotcli.validation.evidence import Evidence

CHECK = "graph as shown"
_MOST_DETAILS = 6


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    if evidence.shown is None:
        return CheckResult(CHECK, Outcome.SKIP, "the model cannot be captured for showing")
    shown = [live for live in evidence.shown if live.graph.has_backward]
    ran = evidence.observed
    if len(shown) != len(ran):
        reason = f"{len(ran)} regions with a backward ran, {len(shown)} are shown"
        return CheckResult(CHECK, Outcome.FAIL, reason, float(len(ran)), float(len(shown)), Unit.COUNT)
    if not ran:
        return CheckResult(CHECK, Outcome.SKIP, "no region has a backward: nothing was partitioned")
    odd: list[str] = []
    for left, right in zip(shown, ran, strict=True):
        if anonymous_fingerprint(left.graph) != anonymous_fingerprint(right.live.graph):
            odd += first_differences(left.graph, right.live.graph)
            continue
        planned = evidence.strategy.plan(left.graph, left)
        odd += _plan_differences(
            {value.id: value.name for value in planned.saved},
            {value.id: value.name for value in right.partition.saved},
        )
    if odd:
        return CheckResult(CHECK, Outcome.FAIL, odd[0], float(len(odd)), 0.0, Unit.COUNT, tuple(odd[:_MOST_DETAILS]))
    nodes = sum(len(region.live.graph.nodes) for region in ran)
    return CheckResult(CHECK, Outcome.PASS, f"{nodes:,} nodes, equal fingerprints, equal plan", 0.0, 0.0, Unit.COUNT)


def anonymous_fingerprint(graph: JointGraph) -> str:
    """The fingerprint of a graph in which parameters and buffers are inputs like any other."""
    nodes = tuple(replace(node, kind=NodeKind.INPUT) if node.kind in PRIMAL_KINDS else node for node in graph.nodes)
    return fingerprint(replace(graph, nodes=nodes))


def first_differences(shown: JointGraph, ran: JointGraph) -> list[str]:
    """Where two graphs part: the first pair of nodes in canonical order, then ops that only one of them has."""
    found: list[str] = []
    left = [shown.nodes[position] for position in canonical_order(shown)]
    right = [ran.nodes[position] for position in canonical_order(ran)]
    for a, b in zip(left, right, strict=False):
        if _describe(a) != _describe(b):
            where = f" ({a.source})" if a.source else ""
            found.append(f"first difference: {_describe(a)} is shown{where}, {_describe(b)} ran")
            break
    ours, theirs = Counter(map(_describe, left)), Counter(map(_describe, right))
    found += [f"only in what is shown: {count} × {text}" for text, count in (ours - theirs).most_common(3)]
    found += [f"only in what ran: {count} × {text}" for text, count in (theirs - ours).most_common(3)]
    return found or [f"the same ops, wired differently ({len(left)} and {len(right)} nodes)"]


def _describe(node: Node) -> str:
    kind = NodeKind.INPUT if node.kind in PRIMAL_KINDS else node.kind
    shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in tensor_leaves(node.value) if isinstance(leaf, TensorSpec)]
    return f"{node.target if node.kind is NodeKind.OP else kind.value} {' '.join(shapes)}".strip()


def _plan_differences(shown: dict[int, str], ran: dict[int, str]) -> list[str]:
    odd = [f"{name} is saved in the plan that is shown, and was not in the one that ran"
           for place, name in shown.items() if place not in ran]  # fmt: skip
    return odd + [f"{name} was saved in the plan that ran, and is not in the one that is shown"
                  for place, name in ran.items() if place not in shown]  # fmt: skip
