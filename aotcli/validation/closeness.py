"""When two sets of tensors count as equal.

For each tensor, with norms over all elements in double precision,

    ‖compiled − ref‖ ≤ 2 ‖eager − ref‖ + 4 eps ‖ref‖ + 2 ‖eager − eager again‖

where ref is the same step in float64 (eager itself where there is none), eps is that of the tensor's dtype, and the
last term is nought for a model that is deterministic. Under Inductor, which lays convolutions out channels last,
‖eager − ref‖ is the larger of eager's errors in its own layout and in that one. Integers and booleans must be equal.
Two compiled steps that are compared with each other may each be as far off as eager is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.validation.subject import Tensors

_MOST_DETAILS = 5


@dataclass(frozen=True)
class Expected:
    """What a set of tensors should be: eager's, the same in float64 where it could be had, and eager's once more
    where a second run gave other numbers, and in the layout that Inductor chooses. `rounding` are relative errors that
    either side may have besides. `whose` names what stands in eager's place."""

    eager: Tensors
    precise: Tensors | None = None
    again: Tensors | None = None
    relaid: Tensors | None = None
    rounding: Mapping[str, float] = field(default_factory=dict[str, float])
    whose: str = "eager"


@dataclass(frozen=True)
class _Distance:
    """How far one tensor is from its reference: norms."""

    name: str
    error: float
    bound: float
    scale: float
    equal: bool


def compare(check: str, found: Tensors, expected: Expected, noun: str) -> CheckResult:
    """A row for a set of tensors: FAIL where one is missing, has another layout, or is further off than allowed."""
    odd = _mismatches(found, expected.eager, expected.whose)
    if odd:
        return CheckResult(check, Outcome.FAIL, odd[0], float(len(odd)), 0.0, Unit.COUNT, tuple(odd[:_MOST_DETAILS]))
    distances = [_distance(name, found[name], expected) for name in expected.eager]
    worst = max(distances, key=lambda each: _ratio(each.error, each.bound))
    failed = [each for each in distances if not each.error <= each.bound]
    count = f"{len(distances)} {noun}{'' if len(distances) == 1 else 's'}"
    if failed:
        failed.sort(key=lambda each: -_ratio(each.error, each.bound))
        reason = f"{failed[0].name} is off" + (f", and {len(failed) - 1} more of {count}" if len(failed) > 1 else "")
    elif all(each.equal for each in distances):
        return CheckResult(check, Outcome.PASS, f"{count}, bitwise {expected.whose}'s", 0.0, 0.0, Unit.COUNT)
    else:
        reason = f"{count}; worst {worst.name}"
    details = tuple(
        f"{each.name}: error {_relative(each.error, each.scale):.2e}, allowed {_relative(each.bound, each.scale):.2e}"
        for each in failed[:_MOST_DETAILS]
    )
    outcome = Outcome.FAIL if failed else Outcome.PASS
    measured, tolerance = _relative(worst.error, worst.scale), _relative(worst.bound, worst.scale)
    return CheckResult(check, outcome, reason, measured, tolerance, Unit.ERROR, details)


def same(left: Tensors, right: Tensors) -> bool:
    """Whether two sets of tensors are equal bit by bit, NaN counting as itself."""
    return left.keys() == right.keys() and all(identical(left[name], right[name]) for name in left)


def worse_than(baseline: Tensors, found: Tensors, expected: Expected) -> list[str]:
    """Names of tensors that are more than twice as far from the reference as `baseline`'s, beyond the bound."""
    ours = {name: _distance(name, found[name], expected) for name in expected.eager}
    theirs = {name: _distance(name, baseline[name], expected) for name in expected.eager}
    return [name for name, each in ours.items() if not each.error <= 2 * theirs[name].error + each.bound]


def within_rounding(found: Tensors, expected: Expected, amplified: float = 0.0) -> bool:
    """Whether half the digits are right: errors are below √eps of the largest tensor's norm.

    The largest's, because a tensor that is nought but for cancellation (the gradient of a bias before BatchNorm) says
    nothing about the size of what was summed up. `amplified` is how far off eager is in a step that magnifies rounding
    (`largest_error`): 16 times that is allowed where it is more.
    """
    if _mismatches(found, expected.eager):
        return False
    distances = [_distance(name, found[name], expected) for name in expected.eager]
    floats = [each for each in expected.eager.values() if each.is_floating_point() or each.is_complex()]
    eps = max((torch.finfo(each.dtype).eps for each in floats), default=0.0)
    largest = max((each.scale for each in distances), default=0.0)
    return all(each.error <= max(math.sqrt(eps), 16 * amplified) * largest for each in distances)


def largest_error(expected: Expected) -> float:
    """How far eager is from the reference, relative to the largest tensor's norm: what the step makes of rounding."""
    distances = [_distance(name, tensor, expected) for name, tensor in expected.eager.items()]
    largest = max((each.scale for each in distances), default=0.0)
    worst = max((each.error for each in distances), default=0.0)
    return worst / largest if largest and math.isfinite(worst) else 0.0


def rounding_of(expected: Expected) -> dict[str, float]:
    """How far eager is from float64, relative to it, for each tensor that has both."""
    found: dict[str, float] = {}
    for name, reference in (expected.precise or {}).items():
        if name in expected.eager and reference.is_floating_point():
            scale = _norm(_wide(reference).nan_to_num(0.0, 0.0, 0.0))
            found[name] = _relative(_difference(expected.eager[name], reference), scale)
    return found


def _mismatches(found: Tensors, eager: Tensors, whose: str = "eager") -> list[str]:
    odd = [f"{name} is missing: {whose} has it" for name in eager if name not in found]
    odd += [f"{name} is there, and {whose} has none" for name in found if name not in eager]
    for name in eager.keys() & found.keys():
        left, right = found[name], eager[name]
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            odd.append(f"{name} is {_layout(left)}, in {whose} {_layout(right)}")
    return odd


def _layout(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _distance(name: str, found: Tensor, expected: Expected) -> _Distance:
    eager = expected.eager[name]
    equal = identical(found, eager)
    if not (eager.is_floating_point() or eager.is_complex()):
        again = expected.again[name] if expected.again is not None else eager
        allowed = equal or not torch.equal(again, eager)
        return _Distance(name, 0.0 if allowed else math.inf, 0.0, 1.0, equal)
    reference = expected.precise.get(name) if expected.precise is not None else None
    if reference is None or reference.shape != eager.shape:
        reference = eager
    scale = _norm(_wide(reference).nan_to_num(0.0, 0.0, 0.0))
    spread = _difference(expected.again[name], eager) if expected.again is not None and name in expected.again else 0.0
    relaid = 0.0 if expected.relaid is None else _difference(expected.relaid[name], reference)
    bound = 2 * max(_difference(eager, reference), relaid) + 4 * torch.finfo(eager.dtype).eps * scale + 2 * spread
    bound += 4 * expected.rounding.get(name, 0.0) * scale
    # A gradient that is nought but for rounding has no norm to speak of: errors are shown relative to eager's then.
    shown = max(scale, _norm(_wide(eager).nan_to_num(0.0, 0.0, 0.0)))
    return _Distance(name, _difference(found, reference), bound, shown, equal)


def identical(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors are equal bit by bit, NaN counting as itself."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(((left == right) | ((left != left) & (right != right))).all())


def _wide(tensor: Tensor) -> Tensor:
    dense = tensor.to_dense() if tensor.layout is not torch.strided else tensor
    return dense.to(torch.complex128 if dense.is_complex() else torch.float64)


def _difference(left: Tensor, right: Tensor) -> float:
    """‖left − right‖; equal infinities and NaNs in the same places differ by nothing."""
    a, b = _wide(left), _wide(right)
    if a.shape != b.shape:
        return math.inf
    equal = (a == b) | (a.isnan() & b.isnan())
    found = _norm(torch.where(equal, torch.zeros_like(a), a - b))
    return found if math.isfinite(found) else math.inf


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor))


def _relative(error: float, scale: float) -> float:
    return error / scale if scale else error


def _ratio(error: float, bound: float) -> float:
    return error / bound if bound else (math.inf if error else 0.0)
