"""Convolutions with BatchNorm: the step updates the running statistics, which are buffers, in place."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def model(channels: int = 8) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    )


def inputs(batch: int = 4, size: int = 16) -> tuple[Tensor]:
    return (torch.randn(batch, 3, size, size),)


def loss(output: Tensor) -> Tensor:
    return output.square().mean()
