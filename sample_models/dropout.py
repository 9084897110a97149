"""Dropout: recomputing a mask without its random state draws another one, and the gradients are wrong."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    def __init__(self, width: int, p: float) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.proj = nn.Linear(width, width)
        self.inner = nn.Dropout(p)
        self.outer = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.outer(self.proj(self.inner(self.fc(x).sin())))


def model(width: int = 128, layers: int = 2, p: float = 0.1) -> nn.Module:
    return nn.Sequential(*(Residual(width, p) for _ in range(layers)))


def inputs(batch: int = 64, width: int = 128) -> tuple[Tensor]:
    return (torch.randn(batch, width),)


def loss(output: Tensor) -> Tensor:
    return output.square().mean()
