"""Random small training steps, each from a seed: what a partitioner may meet, in a few ops."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS, WIDTH = 8, 16

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sin": torch.sin,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "softplus": F.softplus,
    "half": lambda x: x.to(torch.bfloat16).to(torch.float32),
    "clone": torch.clone,
    "transposed": lambda x: x.t().contiguous().t(),
    "reshaped": lambda x: x.reshape(WIDTH, ROWS).reshape(ROWS, WIDTH),
    "sliced": lambda x: F.pad(x[:, 2:], (2, 0)),
    "split": lambda x: torch.cat(x.split(4, dim=1)[::-1], dim=1),
    "chunk": lambda x: x.chunk(2, dim=1)[0].repeat(1, 2),
    "sum": lambda x: x.sum(dim=1, keepdim=True).expand(ROWS, WIDTH),
    "mean": lambda x: x - x.mean(dim=0),
    "amax": lambda x: x - x.amax(dim=1, keepdim=True),
    "softmax": lambda x: x.softmax(dim=-1),
    "log_softmax": lambda x: x.log_softmax(dim=-1),
    "norm": lambda x: F.layer_norm(x, (WIDTH,)),
    "var": lambda x: x / (x.var(dim=1, keepdim=True) + 1.0),
    "cumsum": lambda x: x.cumsum(dim=1),
    "sort": lambda x: x.sort(dim=1)[0],
    "max": lambda x: x.max(dim=1)[0].unsqueeze(1) * x,
    "roll": lambda x: x.roll(1, dims=0),
    "embedding": lambda x: x[torch.arange(ROWS - 1, -1, -1, device=x.device)],
    "attention": lambda x: F.scaled_dot_product_attention(*(x.view(1, 2, ROWS, WIDTH // 2),) * 3).reshape(ROWS, WIDTH),
    "dropout_off": lambda x: F.dropout(x, 0.0, training=True),
    "dropout": lambda x: F.dropout(x, 0.2, training=True),
    "detach": lambda x: x * x.detach(),
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "inplace": lambda x: x.clone().mul_(2).add_(1),
    "inplace_relu": lambda x: (x + 1).relu_(),
    "inplace_part": lambda x: _scale_first_column(x.clone()),
}

BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "sub": torch.sub,
    "maximum": torch.maximum,
    "cat": lambda x, y: torch.cat([x[:, ::2], y[:, 1::2]], dim=1),
    "outer": lambda x, y: (x @ y.t()) @ y,
    "stack": lambda x, y: torch.stack([x, y]).sum(dim=0),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
}


def _scale_first_column(x: Tensor) -> Tensor:
    x[:, 0] *= 3
    return x


FUSIBLE = ("relu", "silu", "tanh", "sin", "sigmoid", "square", "softplus")


class RandomStep(nn.Module):
    """A program of `length` steps over a pool of values; everything follows from `seed`. With `chain` most steps are
    pointwise, so that runs of fusible ops get long."""

    def __init__(self, seed: int, length: int, *, chain: bool = False) -> None:
        super().__init__()
        self.chain = chain
        rng = random.Random(seed)
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(WIDTH, WIDTH)) for _ in range(rng.randint(1, 3)))
        self.bias = nn.Parameter(torch.randn(WIDTH))
        self.register_buffer("scale", torch.randn(WIDTH))
        self.steps = [self._step(rng, 3 + i) for i in range(length)]
        self.results = [rng.randrange(length // 2, length + 3) for _ in range(rng.randint(1, 3))]

    def _step(self, rng: random.Random, known: int) -> tuple[str, str, int, int]:
        if self.chain and rng.random() < 0.97:
            return "unary", rng.choice(FUSIBLE), known - 1, 0
        kind = rng.choices(["unary", "binary", "linear", "bias"], [8, 4, 2, 1])[0]
        name = rng.choice(list(UNARY if kind == "unary" else BINARY))
        # Mostly recent values, so that chains get long, and sometimes old ones, so that values are used far apart.
        first = rng.randrange(max(0, known - 3), known)
        return kind, name, first, rng.randrange(known)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        values = [x, y, x * self.scale]
        for kind, name, first, second in self.steps:
            if kind == "unary":
                values.append(UNARY[name](values[first]))
            elif kind == "binary":
                values.append(BINARY[name](values[first], values[second]))
            elif kind == "linear":
                values.append(F.linear(values[first], self.weights[second % len(self.weights)], self.bias))
            else:
                values.append(values[first] + self.bias)
        # One result always needs a gradient, others may need none.
        return values[-1] * self.bias, *(values[i].clone() for i in self.results)


def random_step(seed: int) -> tuple[RandomStep, tuple[Tensor, Tensor]]:
    torch.manual_seed(seed)
    chain = seed % 10 in (4, 7)
    step = RandomStep(seed, length=130 if chain else 4 + seed % 20, chain=chain)
    x = torch.randn(ROWS, WIDTH, requires_grad=seed % 3 == 0)
    return step, (x, torch.randn(ROWS, WIDTH))
