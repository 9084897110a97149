"""Tied weights: one parameter is the embedding and the output projection, and its gradient is a sum."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Tied(nn.Module):
    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.mix(self.embed(tokens))))


def model(vocab: int = 512, width: int = 64) -> nn.Module:
    return Tied(vocab, width)


def inputs(batch: int = 8, seq: int = 32, vocab: int = 512) -> tuple[Tensor]:
    return (torch.randint(vocab, (batch, seq)),)


def loss(output: Tensor) -> Tensor:
    """Every position is asked for token 0: the gradient is real, the task is not."""
    logits = output.flatten(0, 1)
    return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.int64, device=logits.device))
