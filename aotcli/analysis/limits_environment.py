"""In what a baseline was traced otherwise: the environment, which a project does not choose, and all else, which it
does (settings, inputs, mode)."""

from __future__ import annotations

from aotcli.analysis.diff_environment import environment_changes
from aotcli.ir.difference import EnvironmentChange
from aotcli.ir.trace import Trace

_ENVIRONMENT = frozenset({"torch", "device", "device name", "CUDA", "level"})


def split_changes(before: Trace, now: Trace) -> tuple[tuple[EnvironmentChange, ...], tuple[EnvironmentChange, ...]]:
    """What differs in the environment, and what differs besides.

    Builds of one torch release count as the same (``2.13.0+cpu`` and ``2.13.0``), and so do their CUDAs on a CPU.
    """
    environment: list[EnvironmentChange] = []
    others: list[EnvironmentChange] = []
    on_cpu = before.environment.device == now.environment.device == "cpu"
    for change in environment_changes(before, now):
        if change.what not in _ENVIRONMENT:
            others.append(change)
        elif change.what == "torch":
            left, right = change.left.partition("+")[0], change.right.partition("+")[0]
            if left != right:
                environment.append(EnvironmentChange("torch", left, right))
        elif not (on_cpu and change.what in ("CUDA", "device name")):
            environment.append(change)
    return tuple(environment), tuple(others)
