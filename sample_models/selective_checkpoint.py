"""Selective activation checkpointing: a policy asks for matmuls to be saved and for all else to be recomputed."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

MATMULS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}


def save_matmuls(_context: Any, op: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op in MATMULS else CheckpointPolicy.PREFER_RECOMPUTE


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.proj(torch.nn.functional.gelu(self.fc(self.norm(x))))


class Checkpointed(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        contexts = partial(create_selective_checkpoint_contexts, save_matmuls)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
        return x


def model(width: int = 64, layers: int = 2) -> nn.Module:
    return Checkpointed(width, layers)


def inputs(batch: int = 32, width: int = 64) -> tuple[Tensor]:
    return (torch.randn(batch, width),)


def loss(output: Tensor) -> Tensor:
    return output.square().mean()
