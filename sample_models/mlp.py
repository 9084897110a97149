"""A two-layer perceptron with its loss: the smallest training step worth looking at."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, hidden)
        self.act = nn.GELU()
        self.proj = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(self.act(self.fc(x)))


def model(width: int = 256, hidden: int = 1024) -> nn.Module:
    return MLP(width, hidden)


def inputs(batch: int = 64, width: int = 256) -> tuple[Tensor]:
    return (torch.randn(batch, width),)


def loss(output: Tensor) -> Tensor:
    return output.square().mean()
