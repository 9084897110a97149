"""Times that can be compared: taken in turns in one run, and reported as ratios of medians."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Figure:
    """One promise: what was measured, and whether it is kept. `detail` gives the numbers behind the ratio."""

    promise: str
    measured: str
    kept: bool
    detail: str


def interleaved(timed: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds that each callable reports of itself, over `rounds` turns after one turn that is thrown away.

    Taking turns spreads what else the machine does over all of them alike; every other turn goes backwards, so that
    none always follows the same one.
    """
    names = tuple(timed)
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names if turn % 2 else reversed(names):
            gc.collect()
            seconds = timed[name]()
            if turn:
                found[name].append(seconds)
    return found


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over turns of the ratio within a turn: where a ratio is near 1, drift of the machine would hide it."""
    return median(each / other for each, other in zip(ours, theirs, strict=True))


def elapsed(function: Callable[[], object]) -> float:
    """Seconds of processor time that one call takes: the work is single-threaded, and neighbours do not count."""
    start = time.process_time()
    function()
    return time.process_time() - start


def spread(seconds: Sequence[float]) -> str:
    """Median and range: ``1.23 s (1.20–1.31)``."""
    return f"{median(seconds):.3g} s ({min(seconds):.3g}–{max(seconds):.3g})"


@dataclass(frozen=True)
class Finished:
    """A process that ran: wall seconds and the most memory that it ever held, in bytes."""

    seconds: float
    peak_bytes: int
    stdout: str


def run_process(*command: str | Path) -> Finished:
    """Run to the end, from the project's folder. Raises RuntimeError with the error output where it fails.

    The peak is the kernel's `ru_maxrss` of that one process. A child's begins at its parent's size, so call this from
    a process that is itself small.
    """
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        for each in (stdout, stderr):
            each.seek(0)
        if process.returncode:
            text = " ".join(map(str, command))
            raise RuntimeError(f"{text} ended with {process.returncode}:\n{stderr.read()[-2000:]}")
        unit = 1 if sys.platform == "darwin" else 1024
        return Finished(seconds, usage.ru_maxrss * unit, stdout.read())


def aotcli(*arguments: str | Path) -> Finished:
    """Run the installed command line."""
    return run_process(Path(sys.executable).with_name("aotcli"), *arguments)


def report(figures: Sequence[Figure]) -> None:
    """Hand figures to `python -m benchmarks`, which reads the standard output of each benchmark."""
    print(json.dumps([asdict(figure) for figure in figures]))
