"""What there is to decide about one graph: for each value of the forward, what saving it and what rerunning it costs.

    min  sum c_v r_v   s.t.   sum m_v (a_v - r_v) + sum s_v r_v <= B,   r_v <= a_v,   r_v <= a_u for inputs u of v,
         a_v = 1 where the backward reads v,   a_v <= r_v where v cannot be saved,   r_v = 0 where v must not run again

r_v: v runs again in the backward; a_v: v is available there; saved is what is available and does not run again. c_v is
the cost of running v, m_v its bytes, s_v those of the random state that v needs to draw the same numbers again.

Memory is counted by allocation: a view cannot be saved, what it looks at can. Placeholders are there anyway, so they
are no values here; neither are the bytes of what the forward returns. A value that neither half needs for itself costs
nothing to run, because it runs once wherever it is put.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.obligations import VIEWS, Obligations
from aotcli.analysis.op_names import storage_maker
from aotcli.analysis.replay import state_nbytes
from aotcli.analysis.roles import FORWARD_INPUT_KINDS, Roles, classify
from aotcli.errors import PlanImpossibleError
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag, arg_refs
from aotcli.ir.partition import Reason
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, tensor_leaves

_WORTH_ITS_BYTES = Reason("budget", "dear to recompute")


@dataclass(frozen=True)
class Tradeoff:
    """The decision's data by value; values are numbered in graph order, `positions` are their places in `graph`.

    `inputs` are the values that each is computed from, placeholders left out. `cost` is None where the value must not
    run again, with the reason in `obliged`; `nbytes` is None where it cannot be saved. `state_bytes` are saved where it
    runs again. `read` says whether the backward reads it.
    """

    graph: JointGraph
    positions: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    cost: tuple[int | None, ...]
    nbytes: tuple[int | None, ...]
    state_bytes: tuple[int, ...]
    read: tuple[bool, ...]
    obliged: tuple[Reason | None, ...]

    @cached_property
    def passed_on(self) -> tuple[frozenset[int] | None, ...]:
        """For a value that is free to run and never saved (a view, say): the other values that reading it reads."""
        found: list[frozenset[int] | None] = []
        for v, (cost, nbytes) in enumerate(zip(self.cost, self.nbytes, strict=True)):
            free = cost == 0 and nbytes is None and not self.state_bytes[v]
            found.append(_through(found, self.inputs[v]) if free else None)
        return tuple(found)

    @cached_property
    def reads(self) -> tuple[frozenset[int], ...]:
        """The values that each reads, through those that are passed on."""
        return tuple(_through(self.passed_on, inputs) for inputs in self.inputs)

    @cached_property
    def read_at_last(self) -> frozenset[int]:
        """The values that the backward reads, through those that are passed on."""
        return _through(self.passed_on, [v for v, read in enumerate(self.read) if read])


def _through(passed_on: Sequence[frozenset[int] | None], values: Iterable[int]) -> frozenset[int]:
    found: set[int] = set()
    for v in values:
        behind = passed_on[v]
        found.update((v,) if behind is None else behind)
    return frozenset(found)


def pose_tradeoff(graph: JointGraph, costs: Sequence[int]) -> Tradeoff:
    """The trade-off of a graph without dead nodes and duplicates. `costs` are what running each node costs, by
    position, in any one unit.

    Raises PlanImpossibleError where the backward reads a tuple that can be neither saved nor run again.
    """
    roles = classify(graph)
    obligations = Obligations(graph, roles)
    read = _read_by_backward(graph, roles)
    positions = _values(graph, read)
    number = {position: value for value, position in enumerate(positions)}
    returned = _returned_storages(graph)
    obliged = [obligations.given(position) or obligations.cannot_rerun(position) for position in positions]
    nbytes = [_nbytes(graph, roles, obligations, position, returned) for position in positions]
    tradeoff = Tradeoff(
        graph=graph,
        positions=tuple(positions),
        inputs=tuple(tuple(number[i] for i in graph.inputs_of[position] if i in number) for position in positions),
        cost=tuple(
            None if reason is not None else 0 if roles.unclaimed[position] else costs[position]
            for position, reason in zip(positions, obliged, strict=True)
        ),
        nbytes=tuple(nbytes),
        state_bytes=tuple(_state_bytes(graph, roles, position) for position in positions),
        read=tuple(position in read for position in positions),
        obliged=tuple(obliged),
    )
    lost = out_of_reach(tradeoff)
    if lost is not None:
        raise _impossible(graph.nodes[positions[lost]], obliged[lost])
    return tradeoff


def out_of_reach(tradeoff: Tradeoff) -> int | None:
    """A value that the backward reads and can have in no way; None where every one can be had."""
    stuck: list[bool] = []
    for cost, nbytes, inputs in zip(tradeoff.cost, tradeoff.nbytes, tradeoff.inputs, strict=True):
        stuck.append(nbytes is None and (cost is None or any(stuck[u] for u in inputs)))
    return next((v for v, read in enumerate(tradeoff.read) if read and stuck[v]), None)


def saved_names(tradeoff: Tradeoff, saved: Collection[int], rerun: Collection[int]) -> tuple[tuple[str, Reason], ...]:
    """What a choice saves, by name and with reasons, in graph order: its values, and the placeholders that the backward
    reads for itself or to run values again."""
    graph = tradeoff.graph
    nodes = graph.nodes
    found = {tradeoff.positions[v]: tradeoff.obliged[v] or _WORTH_ITS_BYTES for v in saved}
    needed = _read_by_backward(graph, classify(graph))
    needed.update(source for v in rerun for source in graph.inputs_of[tradeoff.positions[v]])
    for position in needed:
        node = nodes[position]
        if node.kind in FORWARD_INPUT_KINDS:
            is_size = isinstance(node.value, SymbolSpec)
            found[position] = Reason("size", "symbolic size") if is_size else Reason("primal", node.kind.value)
    return tuple((nodes[position].name, reason) for position, reason in sorted(found.items()))


def _read_by_backward(graph: JointGraph, roles: Roles) -> set[int]:
    """Positions outside the backward that it reads, or returns as they are."""
    closure = roles.tangents_closure
    output = len(graph.nodes) - 1  # it reads what either half returns
    found = {source for v in range(output) if closure[v] for source in graph.inputs_of[v]}
    found.update(graph.index[name] for arg in graph.backward_outputs for name in arg_refs(arg))
    return {position for position in found if not closure[position]}


def _values(graph: JointGraph, read: set[int]) -> list[int]:
    """Positions of what the backward reads and of all that this is computed from, placeholders left out."""
    found = set(read)
    pending = list(read)
    while pending:
        for source in graph.inputs_of[pending.pop()]:
            if source not in found:
                found.add(source)
                pending.append(source)
    return sorted(position for position in found if graph.nodes[position].kind is NodeKind.OP)


def _returned_storages(graph: JointGraph) -> frozenset[int]:
    """Storages that stay alive whether saved or not: those of placeholders and of the forward's outputs."""
    names = [name for arg in graph.forward_outputs for name in arg_refs(arg)]
    nodes = [*graph.placeholders, *(graph[name] for name in names)]
    return frozenset(leaf.storage for node in nodes for leaf in tensor_leaves(node.value) if leaf.storage >= 0)


def _nbytes(
    graph: JointGraph, roles: Roles, obligations: Obligations, position: int, returned: frozenset[int]
) -> int | None:
    """Bytes that saving a value keeps alive; None where it cannot be saved."""
    node = graph.nodes[position]
    value = node.value
    if isinstance(value, OpaqueSpec) or (isinstance(value, SymbolSpec) and value.kind != "float"):
        return 0
    if not isinstance(value, TensorSpec) or storage_maker(graph, node.name) is not node:
        return None
    if roles.unclaimed[position] and (Tag.RANDOM in node.tags or Tag.IMPURE in node.tags):
        return None  # it would have to run in the forward, which changes what else is drawn there
    if obligations.policies.must_recompute[position] and obligations.cannot_rerun(position) is None:
        return None
    return 0 if value.storage in returned else value.storage_nbytes


def _state_bytes(graph: JointGraph, roles: Roles, position: int) -> int:
    node = graph.nodes[position]
    return state_nbytes(node) if Tag.RANDOM in node.tags and not roles.unclaimed[position] else 0


def _impossible(node: Node, reason: Reason | None) -> PlanImpossibleError:
    kind = "a view" if node.tags & VIEWS else "a value that cannot be saved"
    because = (
        f"it must not run again: {reason.text}" if reason is not None else "what it is made from must not run again"
    )
    return PlanImpossibleError(
        f"{node.name} ({node.target}) can be neither saved nor recomputed",
        why=f"it is {kind}, the backward reads it, and {because}",
        fix="report it with the record (aotcli trace -o)",
    )
