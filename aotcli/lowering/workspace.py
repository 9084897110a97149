"""Measure the scratch memory of ops: run each distinct one once on tensors of its shapes, and watch the allocator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_arg

from aotcli.analysis.workspace import may_need_workspace, workspace_key
from aotcli.capture import torch_private
from aotcli.capture.cache import cache_folder
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.torch_private_validate import memory_events
from aotcli.ir.files import write_atomically
from aotcli.ir.tensor import tensor_leaves


def known_workspace(live: LiveRegion) -> dict[str, int]:
    """What `measure_workspace` says, measured once on a machine: kept in the cache folder, beside the captures."""
    devices = {leaf.device.partition(":")[0] for node in live.graph.nodes for leaf in tensor_leaves(node.value)}
    where = "cuda" if "cuda" in devices else "cpu"
    machine = torch.cuda.get_device_name().replace(" ", "-") if where == "cuda" else str(torch.get_num_threads())
    path = cache_folder() / "workspace" / f"{torch.__version__}-{where}-{machine}.json"
    known = _read(path)
    found = measure_workspace(live, known)
    if not found.keys() <= known.keys():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({**known, **found}, sort_keys=True, indent=1).encode("utf-8"))
    return found


def _read(path: Path) -> dict[str, int]:
    """What an earlier run measured; nothing where the file is missing or not ours."""
    try:
        stored = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {key: nbytes for key, nbytes in stored.items() if isinstance(key, str) and isinstance(nbytes, int)}


def measure_workspace(live: LiveRegion, known: Mapping[str, int] | None = None) -> dict[str, int]:
    """Bytes that each op of a region allocates beyond what it returns, by `workspace_key`; 0 where it needs none.

    What `known` has is taken over and not run again. An op that cannot be run on arguments of zeros is left out. Runs
    ops on the device of the region, with as many threads as torch uses now: workspaces depend on both.
    """
    found: dict[str, int] = {}
    known = known or {}
    nodes = {node.name: node for node in live.gm.graph.nodes}
    for record in live.graph.nodes:
        if not may_need_workspace(record) or record.name not in nodes or not tensor_leaves(record.value):
            continue
        key = workspace_key(live.graph, record)
        if key in found:
            continue
        if key in known:
            found[key] = known[key]
            continue
        nbytes = _workspace_of(nodes[record.name])
        if nbytes is not None:
            found[key] = nbytes
    return found


def _workspace_of(node: fx.Node) -> int | None:
    """Bytes that one op needs beyond its result; None where it does not run."""
    target: Any = node.target
    with torch.no_grad():
        args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda each: _materialized(each.meta.get("val")))
        try:
            target(*args, **kwargs)  # the first run may set up what later ones find
            return _measured(lambda: target(*args, **kwargs), node)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None  # zeros are no arguments for it, or it runs on another device only: unknown


def _measured(run: Callable[[], Any], node: fx.Node) -> int:
    """The peak of one run above what is left after it."""
    device = next(leaf.device for leaf in _tensors(node.meta.get("val")))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        result = run()
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
        del result
        return max(0, peak)
    with torch.autograd.profiler.profile(use_cpu=True, profile_memory=True) as profiler:
        result = run()
    del result  # it was to outlive the profiler, so that what it holds is not taken for freed
    live = peak = 0
    for _, nbytes in memory_events(profiler):
        live += nbytes
        peak = max(peak, live)
    return max(0, peak - live)


def _tensors(value: Any) -> list[torch.Tensor]:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _materialized(value: Any) -> Any:
    """A tensor of zeros with the layout of a traced value; numbers for symbols."""
    if isinstance(value, torch.Tensor):
        hint = torch_private.size_hint
        shape, stride = [hint(dim) for dim in value.shape], [hint(dim) for dim in value.stride()]
        return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device).zero_()
    if isinstance(value, torch.SymInt):
        return torch_private.size_hint(value)
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return value.node.hint
    if isinstance(value, (tuple, list)):
        return type(value)(_materialized(part) for part in value)
    return value
