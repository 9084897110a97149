"""What the checks look at: eager's results, the compiled copy with its first step, and what the partitioner did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aotcli.capture.recorder import LiveRegion
from aotcli.strategies import Strategy
from aotcli.validation.observer import ObservedRegion
from aotcli.validation.reference import Reference, WholeRun
from aotcli.validation.subject import StepRun, Subject


@dataclass(frozen=True)
class Evidence:
    """One strategy, compiled and run once.

    `first_step` runs the first step of another compiled copy: under a strategy, with eager's random numbers or with
    Inductor's own; `unfused_step` does so op by op, on Inductor's own seeds. `another` is a copy under the same
    strategy, not yet compiled. `shown` are the regions that `aotcli partition` shows for this model, None where they
    cannot be captured. `rival` is the copy compiled with PyTorch's own partitioner, for times; `baseline` what a copy
    gave in which the same backend recomputes nothing.
    """

    label: str
    strategy: Strategy
    backend: str
    rng: str
    seed: int
    steps: int
    max_slowdown: float | None
    reference: Reference
    subject: Subject
    step: StepRun
    observed: tuple[ObservedRegion, ...]
    shown: tuple[LiveRegion, ...] | None
    first_step: Callable[..., StepRun]
    unfused_step: Callable[[Strategy | str], StepRun]
    another: Callable[[], Subject]
    rival: Callable[[], Subject]
    baseline: Callable[[], WholeRun]

    def runs(self) -> list[ObservedRegion] | None:
        """The region behind each of the step's `held`: one that ran twice comes twice. None where it cannot be told."""
        by_number = {region.compiled_as: region for region in self.observed}
        found = [by_number.get(held.compiled_as) for held in self.step.held]
        regions = [region for region in found if region is not None]
        if -1 not in by_number and len(regions) == len(found):
            return regions
        backwards = [region for region in self.observed if region.live.graph.has_backward]
        return backwards if len(backwards) == len(found) else None
