"""The machine that measured, in words that name no host and no person."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe_machine() -> list[str]:
    """One line each for processor, memory, system and software."""
    software = [f"Python {platform.python_version()}"]
    for package in ("torch", "transformers", "typer"):
        try:
            software.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            software.append(f"no {package}")
    return [
        f"{_processor()}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores",
        f"{_memory_gib():.0f} GiB of memory",
        f"{platform.system()} {platform.machine()}",
        ", ".join(software),
    ]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
