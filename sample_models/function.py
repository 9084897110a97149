"""A plain function instead of a module: it has required arguments, so it is itself what is traced."""

from __future__ import annotations

import torch
from torch import Tensor


def model(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    hidden = torch.nn.functional.silu(x @ weight + bias)
    return (hidden * hidden.sigmoid()).sum(dim=-1)


def inputs(batch: int = 32, width: int = 64) -> dict[str, Tensor]:
    return {
        "x": torch.randn(batch, width),
        "weight": torch.randn(width, width, requires_grad=True),
        "bias": torch.zeros(width, requires_grad=True),
    }
