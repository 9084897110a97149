"""A compiled step under our `mincut` with Inductor against the step under PyTorch's own partitioner.

Both are compiled in one process from the same weights, for one thread, and take turns; what is counted is processor
time of forward and backward, so that neighbours do not count. The promise is that ours takes no longer, within noise.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import torch

from aotcli.capture import torch_private
from aotcli.capture.torch_private_validate import uncached
from aotcli.capture.workload import BuiltWorkload, build, load_workload
from aotcli.ir.trace import CaptureSettings
from aotcli.lowering.backend import compile_model
from aotcli.validation.subject import Original, Subject
from benchmarks.measure import Figure, elapsed, interleaved, report, spread

NOISE = 1.05
"""Two copies of one and the same compiled step differ by up to this ratio of medians."""
ROUNDS = 25
WORKLOADS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("GPT of 2 layers, 256 wide, 4 × 128 tokens", "sample_models/gpt.py",
     (("layers", "2"), ("width", "256"), ("batch", "4"), ("seq", "128"), ("vocab", "2000"))),
    ("perceptron, 256 × 1024", "sample_models/mlp.py", (("batch", "1024"),)),
)  # fmt: skip


def by_pytorch(step: Any) -> Any:
    """What `torch.compile` does by itself."""
    return torch.compile(step)


def by_aotcli(step: Any) -> Any:
    return compile_model(step, strategy="mincut", backend="inductor")


def measure(built: BuiltWorkload) -> dict[str, list[float]]:
    """Seconds per step of both, and of PyTorch's a second time, which shows what noise is."""
    makers = {"ours": by_aotcli, "theirs": by_pytorch, "theirs again": by_pytorch}
    original = Original(built)
    subjects = {name: Subject(original, make) for name, make in makers.items()}
    for subject in subjects.values():
        subject.plain_step(seed=0)  # compiles
    timed = {name: partial(_timed, subject) for name, subject in subjects.items()}
    return interleaved(timed, ROUNDS)


def _timed(subject: Subject) -> float:
    """Seconds of one step; its inputs are made before the clock starts."""
    args, kwargs = subject.inputs()
    subject.clear_gradients()
    return elapsed(lambda: subject.backward(subject.forward(args, kwargs)))


def figure(
    name: str, spec: str, overrides: tuple[tuple[str, str], ...], device: str = "cpu", **settings: Any
) -> Figure:
    """Ours against PyTorch's on one workload."""
    chosen = CaptureSettings(overrides=overrides)
    built = build(load_workload(spec, chosen), chosen, fake=False)
    torch_private.reset_dynamo()
    with uncached(eager_random=False), torch_private.dynamo_limits():
        seconds = measure(built)
    torch_private.reset_dynamo()
    ratio = median(seconds["ours"]) / median(seconds["theirs"])
    noise = median(seconds["theirs again"]) / median(seconds["theirs"])
    return Figure(
        f"A step under `mincut` with Inductor takes no longer than under PyTorch's partitioner ({name})",
        f"{ratio:.2f} ×",
        ratio <= NOISE,
        f"{spread(seconds['ours'])} against {spread(seconds['theirs'])}; PyTorch's against itself {noise:.2f} ×",
    )


def main() -> None:
    torch.set_num_threads(1)
    report([figure(*workload) for workload in WORKLOADS])


if __name__ == "__main__":
    main()
