"""Captures of the sample models, each made once in a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# Typer asks which shell runs it before it prints a completion script; `make` runs tests under one it does not know.
os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
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


@pytest.fixture(scope="session")
def captured() -> Callable[[str, str], Any]:
    """`captured(sample, level)` captures a sample model once; needs torch."""
    pytest.importorskip("torch")
    return capture_sample
