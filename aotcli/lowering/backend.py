"""The one compiled path: a Dynamo backend whose partitioner is a strategy of aotcli.

`aotcli.compile`, the backend named "aotcli" and `options={"custom_partitioner_fn": ...}` all end here: Dynamo,
AOTAutograd and Inductor are PyTorch's, the decision is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import fx

from aotcli.capture import torch_private
from aotcli.errors import StrategyError
from aotcli.lowering.partitioner import Partitioner, check_backend
from aotcli.strategies import strategy_class


@dataclass(frozen=True)
class Backend:
    """A Dynamo backend: `base` ("aot_eager" or "inductor") with `partitioner` in its partitioner's place.

    Equal backends are one to Dynamo, so that a model compiled twice with the same options is compiled once.
    """

    base: str
    partitioner: Callable[..., Any]

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if self.base == "inductor":
            return torch_private.compile_with_inductor(gm, inputs, self.partitioner)
        return torch_private.compile_with_aot_eager(gm, inputs, self.partitioner)


def compile_model(model: Any, *, strategy: str = "mincut", backend: str = "aot_eager", **options: Any) -> Any:
    """`torch.compile` with the partition of `strategy`.

    `options` are the strategy's, and those of `torch.compile` that do not choose a backend (dynamic, fullgraph).
    Raises StrategyError for an unknown strategy, option or backend.
    """
    compile_options = {key: options.pop(key) for key in ("dynamic", "fullgraph", "disable") if key in options}
    partitioner = Partitioner(strategy, **options)
    return torch.compile(model, backend=Backend(check_backend(backend), partitioner), **compile_options)


def aotcli_backend(
    gm: fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **rest: Any
) -> Any:
    """The Dynamo backend `aotcli`: ``torch.compile(model, backend="aotcli", options={"strategy": "mincut"})``.

    `options` are `strategy` (default mincut), `backend` (default inductor), and the strategy's own. Raises
    StrategyError for anything else.
    """
    given = {**(options or {}), **rest}
    strategy = str(given.pop("strategy", "mincut"))
    base = check_backend(str(given.pop("backend", "inductor")))
    unknown = [key for key in given if key.isidentifier() and not _has_option(strategy, key)]
    if unknown:
        near = get_close_matches(unknown[0], ["strategy", "backend"], n=1)
        raise StrategyError(
            f"the backend aotcli has no option {unknown[0]!r}",
            why=f"it takes strategy, backend, and the options of {strategy}",
            fix=f"did you mean {near[0]!r}?" if near else "`aotcli strategies` lists them",
        )
    return Backend(base, Partitioner(strategy, **given))(gm, inputs)


def _has_option(strategy: str, name: str) -> bool:
    if strategy.partition(":")[0].endswith(".py"):
        return True  # a strategy of the user's own: it refuses what it does not know
    return name in strategy_class(strategy).__dataclass_fields__
