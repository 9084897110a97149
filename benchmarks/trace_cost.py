"""What `trace` adds to the capture that it cannot do without.

Bare capture is Dynamo and AOTAutograd (for level inductor also Inductor's decompositions and joint passes) up to the
moment when a partition function is handed the joint graph; there it stops. `trace` is everything that the command
does from a model file to the text of its record, imports apart. Both build the model anew, on fake tensors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from aotcli.capture import torch_private
from aotcli.capture.build import build
from aotcli.capture.trace import capture
from aotcli.capture.workload import Workload, load_workload
from aotcli.ir.serial import dump_trace
from aotcli.ir.trace import CaptureSettings
from benchmarks.measure import Figure, elapsed, interleaved, report, spread

MOST = 1.10
LLAMA = (("num_hidden_layers", "32"), ("batch", "1"), ("seq", "4096"))


class Reached(Exception):
    """Bare capture got to the partitioner; carries the number of joint nodes and the time."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.nodes = nodes
        self.at = time.perf_counter()


def stop(gm: torch.fx.GraphModule, _inputs: Any, **_rest: Any) -> Any:
    """A partition function that does nothing but end the capture."""
    raise Reached(len(gm.graph.nodes))


def unreachable(*_arguments: Any, **_rest: Any) -> Any:
    raise AssertionError("the capture went past the partitioner")


def bare(workload: Workload, settings: CaptureSettings) -> Reached:
    """Capture up to the partitioner. Returns what it reached."""
    built = build(workload, settings, fake=True)
    make = torch_private.inductor_backend if settings.level == "inductor" else torch_private.aten_backend
    torch_private.reset_dynamo()
    try:
        with built.fake_mode:
            step = torch.compile(built.step, backend=make(stop, unreachable, unreachable))
            step(*built.args, **built.kwargs)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, Reached):
            cause = getattr(cause, "inner_exception", None) or cause.__cause__
        if cause is None:
            raise
        return cause
    finally:
        torch_private.reset_dynamo()
    raise AssertionError("the step was never partitioned")


def compare(name: str, spec: str, settings: CaptureSettings, rounds: int) -> Figure:
    """The ratio of `trace` to bare capture on one model."""
    nodes = 0

    def time_bare() -> float:
        nonlocal nodes
        start = time.perf_counter()
        reached = bare(load_workload(spec, settings), settings)
        nodes = reached.nodes
        return reached.at - start

    def trace() -> None:
        dump_trace(capture(load_workload(spec, settings), settings).trace)

    timed: dict[str, Callable[[], float]] = {"trace": lambda: elapsed(trace), "bare": time_bare}
    times = interleaved(timed, rounds)
    ratio = median(times["trace"]) / median(times["bare"])
    return Figure(
        f"`trace` costs at most {MOST:.2f} × bare capture: {name}, level {settings.level}",
        f"{ratio:.2f} ×",
        ratio <= MOST,
        f"{spread(times['trace'])} against {spread(times['bare'])}, {nodes:,} joint nodes, {rounds} turns each",
    )


def main() -> None:
    settings = CaptureSettings()
    llama = replace(settings, dtype="bfloat16", overrides=LLAMA)
    report(
        [
            compare("GPT of 12 layers", "sample_models/gpt.py", settings, 5),
            compare("GPT of 12 layers", "sample_models/gpt.py", replace(settings, level="aten"), 5),
            compare("Llama of 32 layers", "hf:benchmarks/llama.json", llama, 3),
        ]
    )


if __name__ == "__main__":
    main()
