"""Random numbers that a model draws: torch's, Python's and, where it is loaded, numpy's."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_generators(seed: int) -> None:
    """Seed every default generator that a model may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


@contextmanager
def generators_restored() -> Iterator[None]:
    """Leave the caller's generators as they were."""
    numpy, state = sys.modules.get("numpy"), random.getstate()
    drawn = None if numpy is None else numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        random.setstate(state)
        if numpy is not None:
            numpy.random.set_state(drawn)
