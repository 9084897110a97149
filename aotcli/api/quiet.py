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
    try:
        yield
    finally:
        logging.disable(before)
