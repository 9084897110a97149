"""A graph break: one function is kept from the compiler, so that the step is captured in several regions."""

from __future__ import annotations

import torch
from torch import Tensor, nn


@torch.compiler.disable
def uncompiled(x: Tensor) -> Tensor:
    return x.cumsum(dim=-1)


class Broken(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = nn.Linear(width, width)
        self.after = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(uncompiled(torch.tanh(self.before(x)))).sigmoid()


def model(width: int = 64) -> nn.Module:
    return Broken(width)


def inputs(batch: int = 16, width: int = 64) -> tuple[Tensor]:
    return (torch.randn(batch, width),)


def loss(output: Tensor) -> Tensor:
    return output.mean()
