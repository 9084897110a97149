"""No log records of torch while a model is captured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_logs() -> Iterator[None]:
    """No log records while a model is captured: torch logs the traceback of what is then raised, and told, as an
    error of ours. Who sets TORCH_LOGS wants to see them."""
    if os.environ.get("TORCH_LOGS"):
        yield
        return
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    # torch's trace of what it compiles heeds no `disable`, and pytest shows it with a test that fails.
    trace = logging.getLogger("torch.__trace")
    if not os.environ.get("TORCH_TRACE"):
        trace.addFilter(_nothing)
    try:
        yield
    finally:
        trace.removeFilter(_nothing)
        logging.disable(before)


def _nothing(record: object) -> bool:
    return False
