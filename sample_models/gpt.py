"""A GPT of the size of GPT-2 small (12 layers, 768 wide, 124 million parameters) with its loss.

Shrink it with --set: layers=2 width=128 batch=2 seq=64 vocab=1000.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self.attend(self.ln1(x)))
        return x + self.proj(F.gelu(self.fc(self.ln2(x))))

    def attend(self, x: Tensor) -> Tensor:
        split = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)


class GPT(nn.Module):
    def __init__(self, layers: int, width: int, seq: int, vocab: int) -> None:
        super().__init__()
        self.te = nn.Embedding(vocab, width)
        self.pe = nn.Embedding(seq, width)
        self.h = nn.ModuleList(Block(width) for _ in range(layers))
        self.f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        for embedding in (self.te, self.pe):
            nn.init.normal_(embedding.weight, std=0.02)
        self.head.weight = self.te.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        x = self.te(tokens) + self.pe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        logits = self.head(self.f(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def model(layers: int = 12, width: int = 768, seq: int = 1024, vocab: int = 50257) -> nn.Module:
    return GPT(layers, width, seq, vocab)


def inputs(batch: int = 8, seq: int = 1024, vocab: int = 50257) -> tuple[Tensor, Tensor]:
    return torch.randint(vocab, (batch, seq)), torch.randint(vocab, (batch, seq))


def loss(output: tuple[Tensor, Tensor]) -> Tensor:
    """The forward ends in the cross entropy; the logits are not asked for."""
    return output[1]
