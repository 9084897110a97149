"""Real training steps of the sample models, run in eager and compiled from the same state and the same seed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from samples import ROOT, SMALL


@dataclass(frozen=True)
class Outcome:
    """What a step left behind: outputs, then the gradients of parameters and inputs, then buffers and inputs."""

    tensors: dict[str, Any]

    def differences(self, other: Outcome, *, bitwise: bool = True) -> list[str]:
        """Names of what differs: in any bit, or by more than rounding."""
        import torch

        assert self.tensors.keys() == other.tensors.keys()
        found = []
        for name, left in self.tensors.items():
            right = other.tensors[name]
            if (left is None) != (right is None):
                found.append(f"{name} (missing in one)")
            elif left is not None:
                same = torch.equal(left, right) if bitwise else torch.allclose(left, right, rtol=1e-4, atol=1e-5)
                if not same:
                    found.append(f"{name} (off by {(left - right).abs().max().item():.2e})")
        return found


def sample_step(sample: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A sample model with its loss as one module, and the arguments to call it with; real tensors."""
    from aotcli.capture.workload import build, load_workload
    from aotcli.ir.trace import CaptureSettings

    settings = CaptureSettings(tensors="real", overrides=SMALL.get(sample, ()))
    built = build(load_workload(str(ROOT / "sample_models" / f"{sample}.py"), settings), settings, fake=False)
    return built.step, built.args, built.kwargs


def run_step(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wrap: Callable[[Any], Any] | None = None, seed: int = 1
) -> Outcome:
    """Run forward and backward of a copy of `module`, wrapped by `wrap` (such as `torch.compile`) first."""
    import torch
    from torch.utils import _pytree as pytree

    module, args, kwargs = copy.deepcopy((module, args, kwargs))
    step = module if wrap is None else wrap(module)
    torch.manual_seed(seed)
    output = step(*args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    differentiable = [leaf for leaf in outputs if leaf.requires_grad]
    if differentiable:
        sum(leaf.float().sum() for leaf in differentiable).backward()
    tensors = {f"output {i}": leaf.detach() for i, leaf in enumerate(outputs)}
    tensors["random state"] = torch.get_rng_state()
    if isinstance(module, torch.nn.Module):
        tensors |= {f"gradient of {name}": each.grad for name, each in module.named_parameters()}
        tensors |= {f"buffer {name}": each.detach() for name, each in module.named_buffers()}
    for i, leaf in enumerate(pytree.tree_leaves((args, kwargs))):
        if isinstance(leaf, torch.Tensor):
            tensors[f"input {i}"] = leaf.detach()
            tensors[f"gradient of input {i}"] = leaf.grad
    return Outcome(tensors)
