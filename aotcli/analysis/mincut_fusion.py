"""Which neighbouring ops a fusing compiler would run as one kernel, in the heuristic's judgement."""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.opsets import OpFacts
from aotcli.ir.joint import Arg, JointGraph, Mapping, Node, Ref

_TRITON = "higher_order.triton_kernel_wrapper_functional"
_CLONING = ("higher_order.auto_functionalized", _TRITON)


@dataclass(frozen=True, slots=True)
class Fusion:
    """Fusibility of edges, by position.

    An edge u → v fuses if both are fusible ops. `takes_all`: a concatenation takes any input into its memory, though it
    cannot be fused into what follows. `takes`: a functionalized kernel takes the inputs that it clones before writing.
    `gives` is fusible, less the results of a user's Triton kernel, into which nothing is fused.
    """

    gives: list[bool]
    joins: list[bool]
    takes_all: list[bool]
    takes: dict[int, frozenset[int]]

    def fusible(self, producer: int, consumer: int) -> bool:
        if self.takes_all[consumer] or (self.gives[producer] and self.joins[consumer]):
            return True
        return producer in self.takes.get(consumer, ())


def fusion(graph: JointGraph, ops: OpFacts) -> Fusion:
    gives = list(ops.fusible)
    takes: dict[int, frozenset[int]] = {}
    for position, node in enumerate(graph.nodes):
        if node.target == "operator.getitem":
            if isinstance(node.args[0], Ref) and graph[node.args[0].name].target == _TRITON:
                gives[position] = False
        elif node.target in _CLONING:
            takes[position] = frozenset(graph.index[name] for name in _cloned(node))
    return Fusion(
        gives=gives,
        joins=ops.fusible,
        takes_all=[node.packet == "aten.cat" for node in graph.nodes],
        takes=takes,
    )


def _cloned(node: Node) -> list[str]:
    """Names of the nodes that a functionalized kernel clones: direct keyword arguments, or those in its `kwargs`."""
    arguments = dict(node.kwargs)
    if node.target == _TRITON:
        wrapped = arguments.get("kwargs")
        arguments = dict(wrapped.items) if isinstance(wrapped, Mapping) else {}
    found: list[str] = []
    for name in node.mutable_args:
        argument: Arg = arguments.get(name)
        parts = argument if isinstance(argument, tuple) and node.target != _TRITON else (argument,)
        found += [part.name for part in parts if isinstance(part, Ref)]
    return found
