"""A U-Net: its skip connections keep early, large activations alive until late.

Shrink it with --set: width=4 batch=1 size=32.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def double_convolution(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1),
        nn.GroupNorm(4, width),
        nn.SiLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.GroupNorm(4, width),
        nn.SiLU(),
    )


class UNet(nn.Module):
    def __init__(self, channels: int, width: int, depth: int) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            double_convolution(before, after) for before, after in zip([channels, *widths], widths, strict=False)
        )
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * each, each, 2, stride=2) for each in reversed(widths[:-1]))
        self.up = nn.ModuleList(double_convolution(2 * each, each) for each in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, channels, 1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.down[0](images)
        skips: list[Tensor] = []
        for block in self.down[1:]:
            skips.append(x)
            x = block(self.pool(x))
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([skips.pop(), grow(x)], dim=1))
        return self.head(x)


def model(channels: int = 3, width: int = 32, depth: int = 3) -> nn.Module:
    return UNet(channels, width, depth)


def inputs(batch: int = 4, channels: int = 3, size: int = 128) -> tuple[Tensor]:
    return (torch.randn(batch, channels, size, size),)


def loss(output: Tensor) -> Tensor:
    return output.square().mean()
