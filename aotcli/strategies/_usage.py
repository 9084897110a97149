"""Lines for a training script that make PyTorch use a plan by itself. `model` is the script's variable."""

from __future__ import annotations

from collections.abc import Mapping

_MINCUT = {"inductor": "model = torch.compile(model)", "aten": 'model = torch.compile(model, backend="aot_eager")'}


def mincut_lines(level: str, settings: Mapping[str, object]) -> tuple[str, ...]:
    """PyTorch's min-cut partitioner with `settings` of torch._functorch.config that differ from their defaults."""
    changed = [f"torch._functorch.config.{name} = {value!r}" for name, value in settings.items()]
    imports = ("import torch._functorch.config",) if changed else ()
    return (*imports, *changed, _MINCUT[level] + ("" if changed else "  # PyTorch's default plan"))


def default_lines(level: str) -> tuple[str, ...]:
    """PyTorch's default partitioner, which it offers as a backend at level aten alone."""
    if level != "aten":
        return ()
    return ('model = torch.compile(model, backend="aot_eager_default_partitioner")',)
