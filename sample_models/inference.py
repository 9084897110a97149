"""Inference: nothing needs a gradient, so there is a forward and nothing to save."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def model(width: int = 128) -> nn.Module:
    layers = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, width))
    return layers.eval().requires_grad_(False)


def inputs(batch: int = 32, width: int = 128) -> tuple[Tensor]:
    return (torch.randn(batch, width),)
