"""What partitioning costs inside `torch.compile`: our partitioner, snapshot to split modules, against PyTorch's own.

Both are called as AOTAutograd calls them, on copies of one captured joint graph; copying is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from torch._functorch.partitioners import min_cut_rematerialization_partition

from aotcli.capture import torch_private
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.torch_private_split import compiling
from aotcli.capture.trace import capture
from aotcli.capture.workload import load_workload
from aotcli.ir.trace import CaptureSettings
from aotcli.lowering.partitioner import Partitioner
from benchmarks.measure import Figure, elapsed, interleaved, report, spread

LEVELS = ("inductor", "aten")
ROUNDS = 5
OVERRIDES = (("layers", "12"), ("width", "128"), ("batch", "2"), ("seq", "64"), ("vocab", "1000"))


def time_partition(live: LiveRegion, function: Callable[..., Any]) -> float:
    """Seconds of processor time of one call on a copy of the joint graph."""
    joint = torch_private.copy_module(live.gm)
    with compiling(live.gm):
        return elapsed(
            lambda: function(
                joint,
                live.joint_inputs,
                num_fwd_outputs=live.num_fwd_outputs,
                static_lifetime_input_indices=list(live.static_indices),
                compiler=live.level,
            )
        )


def figure(level: str) -> Figure:
    settings = CaptureSettings(level=level, overrides=OVERRIDES)
    (live,) = capture(load_workload("sample_models/gpt.py", settings), settings).regions
    times = interleaved(
        {
            "mincut": lambda: time_partition(live, Partitioner("mincut")),
            "recompute-all": lambda: time_partition(live, Partitioner("recompute-all")),
            "theirs": lambda: time_partition(live, min_cut_rematerialization_partition),
        },
        ROUNDS,
    )
    slower = max(("mincut", "recompute-all"), key=lambda name: median(times[name]))
    ratio = median(times[slower]) / median(times["theirs"])
    return Figure(
        f"Partitioning inside `torch.compile` takes no longer than PyTorch's own, level {level}",
        f"{ratio:.2f} of its time",
        ratio <= 1,
        f"mincut {spread(times['mincut'])}, recompute-all {spread(times['recompute-all'])}, PyTorch's min cut"
        f" {spread(times['theirs'])}; GPT of 12 layers, {len(live.graph.nodes):,} joint nodes, {ROUNDS} turns each",
    )


def main() -> None:
    report([figure(level) for level in LEVELS])


if __name__ == "__main__":
    main()
