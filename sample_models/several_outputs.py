"""Several outputs, of which a detached one and an integer one need no gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Heads(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.trunk = nn.Linear(width, width)
        self.classify = nn.Linear(width, classes)
        self.value = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        features = torch.relu(self.trunk(x))
        logits = self.classify(features)
        return logits, self.value(features), features.detach(), logits.argmax(dim=-1)


def model(width: int = 64, classes: int = 10) -> nn.Module:
    return Heads(width, classes)


def inputs(batch: int = 32, width: int = 64) -> tuple[Tensor]:
    return (torch.randn(batch, width),)
