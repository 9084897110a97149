"""A step that changes a buffer and an input in place after reading them.

What is computed from the buffer before it changes must be saved: recomputed in the backward, it would read the new
value, and the gradient would be wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Decaying(nn.Module):
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        y = (x * self.weight) * (self.scale * 2)
        self.scale.mul_(0.5)
        count.add_(1)
        return y.sin()


def model(width: int = 64) -> nn.Module:
    return Decaying(width)


def inputs(batch: int = 16, width: int = 64) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, width), torch.zeros(1)


def loss(output: Tensor) -> Tensor:
    return output.sum()
