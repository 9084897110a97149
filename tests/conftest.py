"""Captures of the sample models, each made once in a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from samples import capture_sample

# Typer asks which shell runs it before it prints a completion script; `make` runs tests under one it does not know.
os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"


@pytest.fixture(scope="session")
def captured() -> Callable[[str, str], Any]:
    """`captured(sample, level)` captures a sample model once; needs torch."""
    pytest.importorskip("torch")
    return capture_sample
