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

from aotcli.capture import torch_private_split
from aotcli.errors import StrategyError
from aotcli.lowering.double_backward import refusing_double_backward
from aotcli.lowering.partitioner import Partitioner
from aotcli.strategies import load_strategy

BACKENDS = ("aot_eager", "inductor")
# Options of torch.compile that have nothing to do with the backend.
_COMPILE_OPTIONS = ("dynamic", "fullgraph", "disable")
_BACKEND_OPTIONS = ("strategy", "backend", "rng")


@dataclass(frozen=True)
class Backend:
    """A Dynamo backend: `base` ("aot_eager" or "inductor") with `partitioner` in its partitioner's place.

    Equal backends are one to Dynamo, so that a model compiled twice with the same options is compiled once.
    """

    base: str
    partitioner: Callable[..., Any]

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if self.base == "inductor":
            compiled = torch_private_split.compile_with_inductor(gm, inputs, self.partitioner)
        else:
            compiled = torch_private_split.compile_with_aot_eager(gm, inputs, self.partitioner)
        return refusing_double_backward(compiled)


def compile_model(model: Any, *, strategy: str = "mincut", backend: str = "aot_eager", **options: Any) -> Any:
    """`torch.compile` with the partition of `strategy`.

        step = aotcli.compile(model, strategy="mincut", backend="inductor")
        step(x).sum().backward()

    `backend` is "aot_eager" (plans at level aten, runs PyTorch's ops one by one) or "inductor". `options` are the
    strategy's own, `rng` ("eager" or "graphsafe", see `Partitioner`), and those of `torch.compile` that choose no
    backend (dynamic, fullgraph, disable).

    Raises StrategyError for an unknown strategy, option or backend.
    """
    compile_options = {key: options.pop(key) for key in _COMPILE_OPTIONS if key in options}
    partitioner = Partitioner(strategy, **options)
    return torch.compile(model, backend=Backend(check_backend(backend), partitioner), **compile_options)


def aotcli_backend(
    gm: fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **rest: Any
) -> Any:
    """The Dynamo backend `aotcli`: ``torch.compile(model, backend="aotcli", options={"strategy": "mincut"})``.

    `options` are `strategy` (default mincut), `backend` (default inductor), `rng` (default eager) and the strategy's
    own. Raises StrategyError for anything else.
    """
    given = {**(options or {}), **rest}
    strategy = str(given.pop("strategy", "mincut"))
    base = check_backend(str(given.pop("backend", "inductor")))
    _refuse_unknown(strategy, given)
    return Backend(base, Partitioner(strategy, **given))(gm, inputs)


def _refuse_unknown(strategy: str, options: Mapping[str, Any]) -> None:
    """Raise for an option that neither the backend nor the strategy has, where it looks like one of the backend's."""
    known = {*_BACKEND_OPTIONS, *load_strategy(strategy).options}
    for key in options:
        near = get_close_matches(key, _BACKEND_OPTIONS, n=1)
        if key.replace("-", "_") not in known and near:
            raise StrategyError(
                f"the backend aotcli has no option {key!r}",
                why=f"it takes {', '.join(_BACKEND_OPTIONS)}, and the options of {strategy}",
                fix=f"did you mean {near[0]!r}?",
            )


def check_backend(name: str) -> str:
    """`name` if it is a backend that aotcli can stand before. Raises StrategyError otherwise."""
    if name not in BACKENDS:
        raise StrategyError(
            f"there is no backend {name!r}",
            why=f"aotcli stands before {' and '.join(BACKENDS)}",
            fix="choose one of them",
        )
    return name
