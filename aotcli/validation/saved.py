"""Check: what the forward really left for the backward is what the plan saves, value by value and byte by byte.

Seen after the forward in autograd's own nodes: tensors with their storages, opaque values, symints, and the random
states that a replayed op needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotcli.analysis.replay import state_nbytes
from aotcli.ir.joint import Tag
from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.ir.partition import SavedKind, SavedValue
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec
from aotcli.validation.evidence import Evidence
from aotcli.validation.observer import ObservedRegion
from aotcli.validation.subject import HeldRegion, HeldTensor

CHECK = "saved storages"
_STATE_NAMES = ("rng_state_output", "fwd_rng_state", "bwd_rng_state")
_MOST_DETAILS = 6


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    regions = [region for region in evidence.observed if region.live.graph.has_backward]
    if not regions or not evidence.step.differentiable:
        return CheckResult(CHECK, Outcome.SKIP, "there is no backward to save for")
    held, runs = evidence.step.held, evidence.runs()
    if runs is None or len({id(region) for region in runs}) < len(regions):
        reason = f"{len(regions)} regions were planned, and {len(held)} left something for a backward"
        return CheckResult(CHECK, Outcome.FAIL, reason, float(len(held)), float(len(regions)), Unit.COUNT)
    odd: list[str] = []
    measured = planned = values = 0
    for region, found in zip(runs, held, strict=True):
        states = planned_states(evidence, region)
        odd += _differences(region, found, states)
        planned += sum(value.nbytes for value in region.partition.saved) + sum(states)
        measured += _held_bytes(found.tensors)
        values += len(found.tensors) + found.opaque + len(found.symints)
    if measured != planned:
        odd.append(f"{measured:,} bytes were kept, and {planned:,} planned")
    if odd:
        details = tuple(odd[:_MOST_DETAILS]) + ((f"and {len(odd) - _MOST_DETAILS} more",) if odd[6:] else ())
        return CheckResult(CHECK, Outcome.FAIL, odd[0], float(measured), float(planned), Unit.BYTES, details)
    reason = f"{values} values as planned, parameters and inputs among them"
    return CheckResult(CHECK, Outcome.PASS, reason, float(measured), float(planned), Unit.BYTES)


def planned_states(evidence: Evidence, region: ObservedRegion) -> list[int]:
    """Bytes of each random state that travels besides the plan's saved values.

    One for each random op that a strategy of ours recomputes. A partition function that splits by itself plans none;
    what its backward asks for by name is taken as meant.
    """
    graph, partition = region.live.graph, region.partition
    random = [graph[name] for name in partition.recomputed if Tag.RANDOM in graph[name].tags]
    if evidence.strategy.partition_function() is None:
        return [state_nbytes(node) for node in random] if evidence.rng == "eager" else []
    placeholders = region.backward.graph.find_nodes(op="placeholder")
    handed = sum(str(node.name).startswith(_STATE_NAMES) for node in placeholders)
    return [state_nbytes(node) for node in random[:handed]]


def _held_bytes(tensors: Iterable[HeldTensor]) -> int:
    return sum({tensor.storage: tensor.storage_nbytes for tensor in tensors}.values())


def _differences(region: ObservedRegion, held: HeldRegion, states: Sequence[int]) -> list[str]:
    """What one region kept against its plan; [] where they agree."""
    saved = region.partition.saved
    tensors = [value for value in saved if value.kind is SavedKind.TENSOR]
    odd: list[str] = []
    if len(held.tensors) != len(tensors) + len(states):
        random = f" and {len(states)} random states" if states else ""
        odd.append(f"{len(held.tensors)} tensors were kept; the plan has {len(tensors)}{random}")
    for value, found in zip(tensors, held.tensors, strict=False):
        expected = _layout(value.value)
        if expected != (found.dtype, found.shape):
            odd.append(f"{value.name}: {_text(found.dtype, found.shape)} was kept, planned {_text(*expected)}")
    for state, nbytes in zip(held.tensors[len(tensors) :], states, strict=False):
        if (state.dtype, state.storage_nbytes) != ("uint8", nbytes):
            odd.append(f"{_text(state.dtype, state.shape)} was kept for a random state of {nbytes:,} bytes")
    opaque = sum(value.kind is SavedKind.OPAQUE for value in saved)
    if held.opaque != opaque:
        odd.append(f"{held.opaque} opaque values were kept, planned {opaque}")
    return odd + _symint_differences(saved, held)


def _symint_differences(saved: Iterable[SavedValue], held: HeldRegion) -> list[str]:
    planned = [value for value in saved if value.kind is SavedKind.SYMINT]
    if len(planned) != len(held.symints):
        return [f"{len(held.symints)} symbolic sizes were kept, planned {len(planned)}"]
    odd: list[str] = []
    for value, found in zip(planned, held.symints, strict=True):
        hint = value.value.hint if isinstance(value.value, SymbolSpec) else None
        if hint is not None and int(hint) != int(found):
            odd.append(f"{value.name}: {found} was kept, planned {hint}")
    return odd


def _layout(value: object) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, TensorSpec):
        return value.dtype.removeprefix("torch."), value.sizes
    return ("opaque" if isinstance(value, OpaqueSpec) else "number"), ()


def _text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"
