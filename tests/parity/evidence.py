"""What PyTorch's own min-cut partitioner builds and finds, read at the private seam while it decides.

`networkx.minimum_cut` is replaced while the partitioner runs on a copy of a graph, so that its whole network can be
read off: arcs from the source are its bans with their reasons, arcs within a node its weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from aotcli.capture.torch_private import copy_module


@dataclass(frozen=True)
class MinCutEvidence:
    """What PyTorch's `solve_min_cut` built and found, by node name.

    `nodes` are those left after its dead-code removal and CSE. `bans` are its own phrases (``cannot recompute: ...``);
    `far_apart` and `long_chain` name the nodes that its two unnamed rules banned. `weights` are the capacities of the
    node arcs, infinite for what cannot be saved; `saved` are the nodes of the cut.
    """

    nodes: tuple[str, ...]
    bans: dict[str, str]
    far_apart: frozenset[str]
    long_chain: frozenset[str]
    weights: dict[str, float]
    cut_value: float
    saved: frozenset[str]
    required_forward: frozenset[str]
    required_backward: frozenset[str]
    tangents_closure: frozenset[str]
    unclaimed: frozenset[str]
    forward_order: dict[str, int]
    dist_from_backward: dict[str, int]


class _Found(BaseException):
    """Leaves the partitioner once its cut is known (it catches every Exception, and writes files then)."""

    def __init__(self, graph: Any, value: float, sink_side: set[str]) -> None:
        super().__init__()
        self.graph, self.value, self.sink_side = graph, value, sink_side


class _RuleLog:
    """Stands for the partitioner's logger and remembers the nodes that its two unnamed rules are about to ban."""

    def __init__(self) -> None:
        self.far_apart: set[str] = set()
        self.long_chain: set[str] = set()

    def info(self, message: str, *values: Any) -> None:
        if message.startswith("used above/below fusible"):
            self.far_apart.add(values[3].name)
        elif message.startswith("too long"):
            self.long_chain.add(values[0].name)

    def debug(self, message: str, *values: Any) -> None:
        pass


def torch_min_cut_evidence(
    gm: fx.GraphModule, *, num_fwd_outputs: int, static_indices: Sequence[int], **config: Any
) -> MinCutEvidence | None:
    """Run PyTorch's min-cut partitioner on a copy of `gm` up to its cut; None where it sees nothing to cut.

    `config` are settings of `torch._functorch.config`. Random ops that nobody reads count as dead, as in a compilation.
    """
    import networkx as nx
    from torch._functorch import config as functorch_config
    from torch._functorch import partitioners
    from torch._guards import TracingContext, tracing

    copied = copy_module(gm)
    rules = _RuleLog()
    infos: list[Any] = []
    classify = partitioners.classify_nodes

    def remember_roles(*args: Any) -> Any:
        infos.append(classify(*args))
        return infos[-1]

    def leave_with_cut(graph: Any, source: str, sink: str) -> Any:
        value, (_, sink_side) = networkx_minimum_cut(graph, source, sink)
        raise _Found(graph, value, sink_side)

    networkx_minimum_cut = nx.minimum_cut
    with contextlib.ExitStack() as stack:
        stack.enter_context(tracing(TracingContext(None)))
        stack.enter_context(functorch_config.patch(config))
        stack.enter_context(_replaced(partitioners, "log", rules))
        stack.enter_context(_replaced(partitioners, "classify_nodes", remember_roles))
        stack.enter_context(_replaced(nx, "minimum_cut", leave_with_cut))
        try:
            partitioners.min_cut_rematerialization_partition(
                copied, (), num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=list(static_indices)
            )
        except _Found as found:
            return _evidence(copied.graph, found, infos[-1], rules)
    return None


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _evidence(graph: fx.Graph, found: _Found, info: Any, rules: _RuleLog) -> MinCutEvidence:
    arcs = found.graph
    bans = {
        point.removesuffix("_in"): arcs["source"][point]["reason"]
        for point in (arcs.successors("source") if "source" in arcs else ())
    }
    nodes = [node for node in graph.nodes if node.op != "output"]
    names = [node.name for node in nodes]
    weights = {
        name: arcs[f"{name}_in"][f"{name}_out"]["capacity"]
        for name in names
        if arcs.has_edge(f"{name}_in", f"{name}_out")
    }
    side = found.sink_side
    return MinCutEvidence(
        nodes=tuple(names),
        bans=bans,
        far_apart=frozenset(rules.far_apart & bans.keys()),
        long_chain=frozenset(rules.long_chain & bans.keys()),
        weights=weights,
        cut_value=found.value,
        saved=frozenset(name for name in weights if f"{name}_in" not in side and f"{name}_out" in side),
        required_forward=frozenset(node.name for node in nodes if info.is_required_fw(node)),
        required_backward=frozenset(node.name for node in nodes if info.is_required_bw(node)),
        tangents_closure=frozenset(node.name for node in nodes if node in info.tangents_closure),
        unclaimed=frozenset(node.name for node in nodes if info.is_unclaimed(node)),
        forward_order={node.name: info.fw_order[node] for node in nodes if info.is_required_fw(node)},
        dist_from_backward={node.name: node.dist_from_bw for node in nodes},
    )
