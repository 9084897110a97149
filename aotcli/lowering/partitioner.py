"""A strategy in the shape that PyTorch's compilers ask for: one callable for every extension point.

It is a `CustomPartitionerFn` for Inductor, and a `partition_fn` for `aot_autograd`, `aot_function`, `aot_module` and
`aot_module_simplified`. Each call snapshots the joint graph, plans it and splits it; nothing is kept between calls.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import fx

import aotcli
from aotcli.capture import torch_private, torch_private_split
from aotcli.capture.origins import Origins
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.snapshot import SnapshotContext, snapshot_joint
from aotcli.errors import StrategyError
from aotcli.ir.partition import Partition
from aotcli.lowering.split import split
from aotcli.strategies import Strategy, load_strategy

RNG_MODES = ("eager", "graphsafe")
_NESTED = "mincut"

Modules = tuple[fx.GraphModule, fx.GraphModule]


@dataclass(frozen=True, init=False)
class Partitioner(torch_private_split.custom_partitioner_base()):
    """Partitions joint graphs by a strategy of aotcli.

        torch.compile(model, options={"custom_partitioner_fn": aotcli.Partitioner("mincut")})
        aot_module(model, fw_compiler, bw_compiler, partition_fn=aotcli.Partitioner("save-all"))

    Frozen, picklable and without state, so that compiled code can be cached: `uuid` covers everything that a plan
    depends on. `rng` is how recomputed random ops draw again what they drew: "eager" saves and sets the state of the
    generator and keeps eager's numbers; "graphsafe" is PyTorch's way for CUDA graphs, with other numbers than eager's.
    Raises StrategyError for an unknown strategy or option, when it is made.
    """

    strategy: str
    options: tuple[tuple[str, object], ...] = field(default=())
    rng: str = field(default="eager")

    def __init__(self, strategy: str = "mincut", *, rng: str = "eager", **options: object) -> None:
        if rng not in RNG_MODES:
            raise StrategyError(
                f"there is no rng {rng!r}",
                why="rng says how random ops are run again: with eager's numbers, or as CUDA graphs allow",
                fix=f"choose {' or '.join(RNG_MODES)}",
            )
        load_strategy(strategy, options)  # what is wrong is refused before anything is compiled
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "options", tuple(sorted(options.items())))
        object.__setattr__(self, "rng", rng)

    def load(self) -> Strategy:
        """The strategy with its options."""
        return load_strategy(self.strategy, dict(self.options))

    def __call__(
        self,
        gm: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Sequence[int] | None = None,
        compiler: str = "aot_eager",
        **rest: Any,
    ) -> Modules:
        """The forward and the backward module of a joint graph.

        `compiler` is what Inductor passes to its partitioner; it decides the level at which the plan is made. The body
        of a higher-order op (`invoke_subgraph`) is handed over on its own, before the graph around it, and is split by
        `mincut` whatever the strategy: a capture does the same, so that the outer graph is the one that was planned.
        """
        static = tuple(static_lifetime_input_indices or ())
        live = live_region(gm, joint_inputs, num_fwd_outputs, static, "inductor" if compiler == "inductor" else "aten")
        strategy = load_strategy(_NESTED) if torch_private.is_nested_region(joint_inputs) else self.load()
        return carry_out(strategy, live, rng=self.rng)[0]

    def uuid(self) -> str:
        """What compiled code is cached under: our sources, the strategy, its options and the files that it reads."""
        digest = hashlib.sha256(_sources_digest().encode())
        digest.update(repr((self.strategy, self.options, self.rng)).encode())
        for path in _files_named(self.strategy, dict(self.options)):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def live_region(
    gm: fx.GraphModule, joint_inputs: Any, num_fwd_outputs: int, static: tuple[int, ...], level: str
) -> LiveRegion:
    """The record of a joint graph that a compiler hands over, beside the graph itself."""
    context = SnapshotContext(Origins({}, Path.cwd()), level)
    graph = snapshot_joint(
        gm, context, num_forward_outputs=num_fwd_outputs, static_indices=static, primals={}, has_backward=True
    )
    return LiveRegion(graph, gm, joint_inputs, num_fwd_outputs, static, level)


def carry_out(strategy: Strategy, live: LiveRegion, *, rng: str = "eager") -> tuple[Modules, Partition]:
    """Plan a region and split it. A strategy that is a partition function of its own splits by itself."""
    partition = strategy.plan(live.graph, live)
    function = strategy.partition_function()
    if function is None:
        return split(live, partition, rng=rng), partition
    modules = function(
        torch_private.copy_module(live.gm),
        live.joint_inputs,
        num_fwd_outputs=live.num_fwd_outputs,
        static_lifetime_input_indices=list(live.static_indices),
    )
    return modules, partition


@functools.cache
def _sources_digest() -> str:
    """A hash of this package's own code: another version must not find what this one compiled."""
    root = Path(aotcli.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files_named(strategy: str, options: Mapping[str, object]) -> list[Path]:
    """Files that a strategy reads: a plan, a policy, or the Python file it is defined in."""
    # FILE.py:NAME is a strategy of the user's own, replay:FILE a plan.
    texts = [value for value in options.values() if isinstance(value, str)]
    named = [strategy.rpartition(":")[0], strategy.partition(":")[2], *texts]
    return [Path(each) for each in named if each and Path(each).is_file()]
