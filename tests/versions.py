"""One small GPT in several versions, for comparisons: --set act=silu attend=byhand norm=rms bias=no layers=3."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS = {"gelu": F.gelu, "silu": F.silu, "relu": F.relu}


class Block(nn.Module):
    def __init__(self, width: int, act: str, attend: str, norm: str, bias: bool) -> None:
        super().__init__()
        self.heads = 2
        self.act = act
        self.attend = attend
        self.ln1 = nn.RMSNorm(width) if norm == "rms" else nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.ln2 = nn.RMSNorm(width) if norm == "rms" else nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width, bias=bias)
        self.proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self.mix(self.ln1(x)))
        return x + self.proj(ACTIVATIONS[self.act](self.fc(self.ln2(x))))

    def mix(self, x: Tensor) -> Tensor:
        split = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if self.attend == "sdpa":
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
            mixed = scores.masked_fill(~causal, float("-inf")).softmax(dim=-1) @ v
        return mixed.transpose(1, 2).reshape(x.shape)


class GPT(nn.Module):
    def __init__(self, layers: int, width: int, vocab: int, act: str, attend: str, norm: str, bias: bool) -> None:
        super().__init__()
        self.te = nn.Embedding(vocab, width)
        self.h = nn.ModuleList(Block(width, act, attend, norm, bias) for _ in range(layers))
        self.f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.te(tokens)
        for block in self.h:
            x = block(x)
        return F.cross_entropy(self.head(self.f(x)).flatten(0, 1), tokens.flatten())


def model(
    layers: int = 4,
    width: int = 64,
    vocab: int = 512,
    act: str = "gelu",
    attend: str = "sdpa",
    norm: str = "layer",
    bias: str = "yes",
) -> nn.Module:
    return GPT(layers, width, vocab, act, attend, norm, bias == "yes")


def inputs(batch: int = 2, seq: int = 32, vocab: int = 512) -> tuple[Tensor]:
    return (torch.randint(vocab, (batch, seq)),)


def loss(output: Tensor) -> Tensor:
    return output
