"""A residual network of the size of ResNet-50 without a loss: the gradient of its logits comes in as a tangent.

Shrink it with --set: width=8 batch=2 size=32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions around a shortcut, which is a convolution where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != 4 * width:
            projection = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = nn.ModuleList()
        channels = width
        for number, depth in enumerate((3, 4, 6, 3)):
            stage = nn.Sequential()
            for position in range(depth):
                stride = 2 if number > 0 and position == 0 else 1
                stage.append(Bottleneck(channels, width << number, stride))
                channels = 4 * (width << number)
            self.stages.append(stage)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.pool(F.relu(self.bn(self.stem(images))))
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(dim=(2, 3)))


def model(width: int = 64, classes: int = 1000) -> nn.Module:
    return ResNet(width, classes)


def inputs(batch: int = 32, size: int = 224) -> tuple[Tensor]:
    return (torch.randn(batch, 3, size, size),)
