"""Dynamic shapes: batch and length stay symbols, in the graph and in the bytes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class Pooled(nn.Module):
    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.fc = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.relu(self.fc(self.embed(tokens)))
        return x.flatten(0, 1).sum(dim=0) / (tokens.shape[0] * tokens.shape[1])


def model(vocab: int = 512, width: int = 64) -> nn.Module:
    return Pooled(vocab, width)


def inputs(batch: int = 8, seq: int = 24, vocab: int = 512) -> tuple[Tensor]:
    return (torch.randint(vocab, (batch, seq)),)


def loss(output: Tensor) -> Tensor:
    return output.square().sum()


dynamic_shapes = {"tokens": {0: Dim("batch"), 1: Dim("length")}}
