"""The sample models: which there are, small versions of them, and their captures, each made once in a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SAMPLES = tuple(sorted(path.stem for path in (ROOT / "sample_models").glob("*.py")))
LEVELS = ("aten", "inductor")

# Small enough that all of them take seconds, deep enough that layers repeat.
SMALL: dict[str, tuple[tuple[str, str], ...]] = {
    "gpt": (("layers", "2"), ("width", "128"), ("batch", "2"), ("seq", "64"), ("vocab", "1000")),
    "resnet": (("width", "8"), ("batch", "2"), ("size", "32")),
    "unet": (("width", "4"), ("batch", "1"), ("size", "32")),
}


@cache
def capture_sample(sample: str, level: str) -> Any:
    """The capture (aotcli.capture.trace.Capture) of a sample model at a level."""
    from aotcli.capture.trace import capture
    from aotcli.capture.workload import load_workload
    from aotcli.ir.trace import CaptureSettings

    settings = CaptureSettings(level=level, overrides=SMALL.get(sample, ()))
    return capture(load_workload(str(ROOT / "sample_models" / f"{sample}.py"), settings), settings)
