"""Telling a lack of memory from other failures."""

from __future__ import annotations

import torch

from aotcli.errors import EnvironmentProblem

_CPU_ALLOCATOR = "DefaultCPUAllocator"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception, or one that it came from, says that memory did not suffice."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, (torch.OutOfMemoryError, MemoryError)) or _CPU_ALLOCATOR in str(current):
            return True
        current = current.__cause__ or current.__context__
    return False


def out_of_memory(doing: str, error: BaseException) -> EnvironmentProblem:
    """What to tell where nothing can go on without that memory."""
    first = (str(error).splitlines() or [""])[0]
    return EnvironmentProblem(
        f"out of memory while {doing}",
        why=f"{type(error).__name__}: {first}",
        fix="make the inputs smaller: --set batch=1, or --input",
    )
