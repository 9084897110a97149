"""Which folder of baselines is meant, where no configuration has to say so: a test keeps baselines, too."""

from __future__ import annotations

from pathlib import Path

from aotcli.api.baselines import FOLDER, BaselineStore
from aotcli.cli.config import load_config


def find_store(start: Path) -> BaselineStore:
    """The nearest folder of baselines at or above `start`; else the one that the project's configuration would have."""
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return BaselineStore(folder / FOLDER)
    config = load_config(start)
    return BaselineStore((start if config.path is None else config.path.parent) / FOLDER)
