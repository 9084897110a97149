"""Check: how long a step takes against eager, and against the step under PyTorch's own partitioner.

The three take turns in one process, after a turn that is thrown away; medians are compared. It is a figure, not a
verdict, unless a largest slowdown against PyTorch's partitioner was asked for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from statistics import median

import torch

from aotcli.capture.seeding import seed_generators
from aotcli.ir.outcome import CheckResult, Outcome, Unit
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import Subject

CHECK = "step time"
_LEAST_ROUNDS = 5
_MOST_ROUNDS = 50
_BUDGET_S = 2.0


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    subjects = {
        "eager": evidence.reference.subject,
        "torch-mincut": evidence.rival(),
        "this": evidence.subject,
    }
    seconds = {name: median(each) for name, each in take_turns(subjects, evidence.seed).items()}
    ratio = seconds["this"] / seconds["torch-mincut"]
    reason = (
        f"{1e3 * seconds['this']:.3g} ms: {ratio:.2f} × torch-mincut,"
        f" {seconds['this'] / seconds['eager']:.2f} × eager ({1e3 * seconds['eager']:.3g} ms)"
    )
    limit = evidence.max_slowdown
    if limit is None:
        return CheckResult(CHECK, Outcome.INFO, reason, ratio, None, Unit.RATIO)
    outcome = Outcome.PASS if ratio <= limit else Outcome.FAIL
    return CheckResult(CHECK, outcome, reason, ratio, limit, Unit.RATIO)


def take_turns(subjects: Mapping[str, Subject], seed: int, budget_s: float = _BUDGET_S) -> dict[str, list[float]]:
    """Wall seconds of steps of each subject, in turns, within about `budget_s` but for a least number of rounds."""
    found: dict[str, list[float]] = {name: [] for name in subjects}
    started = time.perf_counter()
    for turn in range(_MOST_ROUNDS + 1):
        for name, subject in subjects.items():
            seconds = _timed_step(subject, seed)
            if turn:
                found[name].append(seconds)
        if turn >= _LEAST_ROUNDS and time.perf_counter() - started > budget_s:
            break
    return found


def _timed_step(subject: Subject, seed: int) -> float:
    args, kwargs = subject.inputs()
    subject.clear_gradients()
    gc.collect(0)
    seed_generators(seed)
    _synchronize(subject.device)
    start = time.perf_counter()
    subject.backward(subject.forward(args, kwargs))
    _synchronize(subject.device)
    return time.perf_counter() - start


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
