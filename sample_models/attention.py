"""Causal self-attention written out by hand: scores, mask, softmax and their bytes are all in the graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = scores.masked_fill(~causal, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


def model(width: int = 128, heads: int = 4) -> nn.Module:
    return Attention(width, heads)


def inputs(batch: int = 4, seq: int = 128, width: int = 128) -> tuple[Tensor]:
    return (torch.randn(batch, seq, width),)
