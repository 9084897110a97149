"""Checks: peak memory of the step against the plan's prediction, and against eager's.

Peak is live allocator bytes above parameters, buffers and inputs, from the start of the step to the end of its
backward. The prediction is the plan's timeline with the scratch memory of ops, which is measured once for each distinct
op and kept. Of a step whose activations dwarf its largest op it must be right to a percent (3 % on CUDA); of a smaller
one it must not be above what was measured, nor further below than the scratch memory of one op explains. Of a step of
several regions it must lie between bounds: what one hands to the next may be freed there, or held to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotcli.analysis.step_peak import RegionMemory, bound_step_peak, region_memory
from aotcli.analysis.workspace import timeline_with_workspace
from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.ir.tensor import tensor_leaves
from aotcli.lowering.workspace import known_workspace
from aotcli.validation.allocator import measure_peak
from aotcli.validation.evidence import Evidence
from aotcli.validation.observer import ObservedRegion

CHECK = "peak as predicted"
EAGER_CHECK = "peak against eager"
MIB = 1 << 20
LEAST_ACTIVATION_BYTES = 50 * MIB
LARGEST_OP_TIMES = 8
SHARE = {"cpu": 0.01, "cuda": 0.03}


def check(evidence: Evidence) -> list[CheckResult]:
    """Both rows, from one measurement."""
    subject = evidence.subject
    subject.clear_gradients()
    args, kwargs = subject.inputs()
    measured = measure_peak(lambda: subject.backward(subject.forward(args, kwargs)), subject.device)
    return [_against_prediction(evidence, measured), _against_eager(evidence, measured)]


def _against_eager(evidence: Evidence, measured: int) -> CheckResult:
    eager = evidence.reference.peak_bytes
    if not eager:
        return CheckResult(EAGER_CHECK, Outcome.SKIP, "eager allocates nothing")
    change = 100 * (measured / eager - 1)
    reason = f"{abs(change):.1f} % {'more' if change > 0 else 'less'} than eager"
    return CheckResult(EAGER_CHECK, Outcome.INFO, reason, float(measured), float(eager), Unit.BYTES)


def _against_prediction(evidence: Evidence, measured: int) -> CheckResult:
    regions = [region for region in evidence.observed if region.live.graph.has_backward]
    if not regions:
        return CheckResult(CHECK, Outcome.SKIP, "no region has a backward: nothing was planned")
    runs = evidence.runs() or regions
    if len(runs) > 1:
        return _against_bounds(evidence, runs, measured)
    live, partition = regions[0].live, regions[0].partition
    predicted = timeline_with_workspace(live.graph, partition, known_workspace(live)).peak_bytes
    error = measured / predicted - 1 if predicted else 0.0
    side = "above" if error >= 0 else "below"
    apart = f"{100 * abs(error):.2f} % {side} the prediction"

    def row(outcome: Outcome, reason: str) -> CheckResult:
        return CheckResult(CHECK, outcome, reason, float(measured), float(predicted), Unit.BYTES)

    if evidence.backend == "inductor":
        return row(Outcome.INFO, f"{apart}, which is an unfused estimate")
    allowed = SHARE.get(evidence.subject.device.type, 0.03) * predicted
    if abs(measured - predicted) <= allowed:
        return row(Outcome.PASS, apart)
    largest = largest_op_bytes(regions)
    if predicted >= LEAST_ACTIVATION_BYTES and predicted >= LARGEST_OP_TIMES * largest:
        return row(Outcome.FAIL, f"{apart}: more than {100 * allowed / predicted:.0f} %")
    if measured < predicted - allowed:
        return row(Outcome.FAIL, f"{apart}, which no scratch memory explains")
    # Scratch memory that could not be measured: a convolution's is up to twice its result.
    if measured > predicted + allowed + 3 * largest + MIB:
        return row(Outcome.FAIL, f"{apart}: more than scratch memory of any op explains")
    return row(Outcome.INFO, f"{apart}: a small step, in which a few buffers weigh")


def _against_bounds(evidence: Evidence, regions: Sequence[ObservedRegion], measured: int) -> CheckResult:
    """The row of a step of several regions: what one hands to the next may be freed there, or held to the end."""
    known: dict[int, RegionMemory] = {}
    for region in regions:
        if id(region) not in known:
            graph, plan = region.live.graph, region.partition
            timeline = timeline_with_workspace(graph, plan, known_workspace(region.live))
            known[id(region)] = region_memory(graph, plan, timeline)
    bounds = bound_step_peak([known[id(region)] for region in regions])
    between = f"between {bounds.low_bytes:,} and {bounds.high_bytes:,} bytes"
    reason = f"{len(regions)} regions together: predicted {between}"
    share = SHARE.get(evidence.subject.device.type, 0.03)
    outcome = Outcome.PASS
    if evidence.backend == "inductor":
        outcome, reason = Outcome.INFO, f"{reason}, an unfused estimate"
    elif measured < (1 - share) * bounds.low_bytes:
        outcome, reason = Outcome.FAIL, f"{reason}; it is below"
    elif measured > (1 + share) * bounds.high_bytes:
        # The ops between regions are the user's, and in no plan.
        outcome, reason = Outcome.INFO, f"{reason}; what runs between regions is not predicted"
    return CheckResult(CHECK, outcome, reason, float(measured), float(bounds.high_bytes), Unit.BYTES)


def largest_op_bytes(regions: Iterable[ObservedRegion]) -> int:
    """The bytes of the largest result of any op."""
    largest = 0
    for region in regions:
        for node in region.live.graph.nodes:
            if not node.is_placeholder:
                for leaf in tensor_leaves(node.value):
                    largest = max(largest, leaf.storage_nbytes)
    return largest
