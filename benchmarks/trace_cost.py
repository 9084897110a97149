"""What `trace` adds to the capture that it cannot do without.

Bare capture is Dynamo and AOTAutograd (for level inductor also Inductor's decompositions and joint passes) with no
partitioner: the partition function hands back two empty halves, and everything stops when the compiled step would run.
`trace` is everything that the command does from a model file to the text of its record, imports apart. Both build the
model anew, on fake tensors. What earlier turns left behind is collected before each, outside of the time taken: a
command captures once.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from aotcli.capture import torch_private
from aotcli.capture.trace import capture
from aotcli.capture.workload import Workload, build, load_workload
from aotcli.ir.serial import dump_trace
from aotcli.ir.trace import CaptureSettings
from benchmarks.measure import Figure, elapsed, interleaved, paired_ratio, report, spread

MOST = 1.10
LLAMA = (("num_hidden_layers", "32"), ("batch", "1"), ("seq", "4096"))


class Compiled(Exception):
    """Raised in place of the compiled step, when bare capture is done."""


def run_nothing(*_arguments: Any) -> list[Any]:
    raise Compiled


def compile_nothing(_gm: torch.fx.GraphModule, _inputs: Any) -> Any:
    return torch_private.boxed(run_nothing)


def bare(workload: Workload, settings: CaptureSettings) -> tuple[float, int]:
    """Capture without a partitioner. Returns the seconds that it took and the number of joint nodes."""
    nodes = 0

    def partition(gm: torch.fx.GraphModule, _inputs: Any, *, num_fwd_outputs: int, **_rest: Any) -> Any:
        nonlocal nodes
        nodes += len(gm.graph.nodes)
        return torch_private.stub_halves(gm, num_fwd_outputs)

    start = time.process_time()
    built = build(workload, settings, fake=True)
    make = torch_private.inductor_backend if settings.level == "inductor" else torch_private.aten_backend
    torch_private.reset_dynamo()
    with built.fake_mode or nullcontext():
        step = torch.compile(built.step, backend=make(partition, compile_nothing, compile_nothing))
        try:
            step(*built.args, **built.kwargs)
        except Compiled:
            return time.process_time() - start, nodes
        finally:
            torch_private.reset_dynamo()
    raise AssertionError("the step ran without being compiled")


def compare(name: str, spec: str, settings: CaptureSettings, rounds: int) -> Figure:
    """The ratio of `trace` to bare capture on one model."""
    nodes = 0

    def time_bare() -> float:
        nonlocal nodes
        workload = load_workload(spec, settings)
        gc.collect()
        seconds, nodes = bare(workload, settings)
        return seconds

    def time_trace() -> float:
        gc.collect()
        return elapsed(lambda: dump_trace(capture(load_workload(spec, settings), settings).trace))

    timed: dict[str, Callable[[], float]] = {"trace": time_trace, "bare": time_bare}
    times = interleaved(timed, rounds)
    ratio = paired_ratio(times["trace"], times["bare"])
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
            compare("GPT of 12 layers", "sample_models/gpt.py", settings, 9),
            compare("GPT of 12 layers", "sample_models/gpt.py", replace(settings, level="aten"), 9),
            compare("Llama of 32 layers", "hf:benchmarks/llama.json", llama, 5),
        ]
    )


if __name__ == "__main__":
    main()
