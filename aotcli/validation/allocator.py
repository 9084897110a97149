"""The most bytes that were live above those at the start, as the allocator counts them."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import torch
from torch.autograd.profiler import profile

from aotcli.capture.torch_private_validate import memory_events

# The profiler's library greets on standard error when it starts; nothing below this level is said.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def measure_peak(function: Callable[[], object], device: torch.device) -> int:
    """The peak of live bytes while `function` runs, above what is live when it starts.

    On CUDA the caching allocator keeps the count; on the CPU it is summed up from the profiler's memory events.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(use_cpu=True, profile_memory=True) as profiler:
        function()
    live = peak = 0
    for _, nbytes in memory_events(profiler):
        live += nbytes
        peak = max(peak, live)
    return peak
