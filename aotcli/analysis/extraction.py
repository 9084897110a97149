"""Which nodes of a joint graph belong to a half, given what the half is handed: by positions, without torch.

The rules are those of `_extract_graph_with_inputs_outputs` (torch._functorch.partitioners): a node belongs to a half
if everything that it reads is there and nothing bars it; what nothing reads is dropped unless it has effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from aotcli.analysis.roles import must_be_in_backward, must_be_in_forward
from aotcli.errors import VerificationError
from aotcli.ir.joint import PRIMAL_KINDS, Arg, JointGraph, Mapping, Node, NodeKind, Ref, Tag, arg_refs, map_refs
from aotcli.ir.partition import Decision
from aotcli.ir.tensor import OpaqueSpec, tensor_leaves

COPY = "aten.copy_.default"
GETITEM = "operator.getitem"


class Extraction:
    """A joint graph seen through the removals of a decision.

    `ops` are the positions of what computes (ops and attributes) in graph order; `inputs_of` is the graph's, with
    removed common subexpressions renamed to what stands for them.
    """

    def __init__(self, graph: JointGraph, decision: Decision) -> None:
        self.graph = graph
        nodes, index = graph.nodes, graph.index
        self._stands_for = {index[old]: index[new] for old, new in decision.replaced.items()}
        for old in self._stands_for:
            while self._stands_for[old] in self._stands_for:
                self._stands_for[old] = self._stands_for[self._stands_for[old]]
        self._names = {nodes[old].name: nodes[new].name for old, new in self._stands_for.items()}
        gone = {index[name] for name in decision.removed} | self._stands_for.keys()
        self.ops = [p for p, node in enumerate(nodes) if node.kind in (NodeKind.OP, NodeKind.ATTR) and p not in gone]
        self.inputs_of = self._renamed_inputs() if self._stands_for else graph.inputs_of
        self.tangents = self.of_kind(NodeKind.TANGENT)
        self.backward_states = [p for p in self.of_kind(*PRIMAL_KINDS) if is_backward_state(nodes[p])]
        self._effectful = {p for p in self.ops if Tag.EFFECTFUL in nodes[p].tags}
        self._barred = {
            "forward": {p for p in self.ops if must_be_in_backward(nodes[p])},
            "backward": {p for p in self.ops if must_be_in_forward(nodes[p])},
        }

    def _renamed_inputs(self) -> tuple[tuple[int, ...], ...]:
        stands_for = self._stands_for
        return tuple(tuple(stands_for.get(each, each) for each in inputs) for inputs in self.graph.inputs_of)

    def of_kind(self, *kinds: NodeKind) -> list[int]:
        """Positions of the placeholders of these kinds."""
        return [p for p, node in enumerate(self.graph.nodes) if node.kind in kinds]

    def named(self, target: str) -> set[int]:
        """Positions of the ops with this target."""
        nodes = self.graph.nodes
        return {p for p in self.ops if nodes[p].target == target}

    def positions(self, outputs: Iterable[Arg]) -> list[int]:
        """Positions of the nodes that outputs refer to."""
        index = self.graph.index
        return [index[name] for arg in outputs for name in arg_refs(arg)]

    def merged_storages(self) -> dict[int, int]:
        """For the storage of each removed common subexpression, that of what stands for it."""
        nodes = self.graph.nodes
        merged: dict[int, int] = {}
        for old, new in sorted(self._stands_for.items()):
            for gone, kept in zip(tensor_leaves(nodes[old].value), tensor_leaves(nodes[new].value), strict=True):
                if gone.storage != kept.storage and gone.storage >= 0:
                    merged[gone.storage] = merged.get(kept.storage, kept.storage)
        return merged

    def extract(self, side: str, inputs: Sequence[int], outputs: Sequence[Arg]) -> tuple[list[int], tuple[Arg, ...]]:
        """The nodes of a half in graph order, and its outputs by their names after removals.

        Raises VerificationError where an output needs a value that is neither given nor computable.
        """
        valid = self._computable(side, inputs)
        returned = tuple(self._returned(side, arg, valid) for arg in outputs)
        needed = bytearray(len(valid))
        for position in self.positions(returned):
            needed[position] = 1
        for position in inputs:
            valid[position] = 0  # given, hence not computed
        kept: list[int] = []
        effectful, inputs_of = self._effectful, self.inputs_of
        for position in reversed(self.ops):
            if valid[position] and (needed[position] or position in effectful):
                kept.append(position)
                for source in inputs_of[position]:
                    needed[source] = 1
        kept.reverse()
        return kept, returned

    def _computable(self, side: str, inputs: Sequence[int]) -> bytearray:
        valid = bytearray(len(self.graph.nodes))
        for position in inputs:
            valid[position] = 1
        barred, inputs_of = self._barred[side], self.inputs_of
        for position in self.ops:
            if valid[position] or position in barred:
                continue
            for source in inputs_of[position]:
                if not valid[source]:
                    break
            else:
                valid[position] = 1
        return valid

    def _returned(self, side: str, arg: Arg, valid: bytearray) -> Arg:
        """An output after removals. One that the other half writes becomes the input that it aliases."""
        renamed = map_refs(arg, self._names)
        if not isinstance(renamed, Ref) or valid[self.graph.index[renamed.name]]:
            return renamed
        alias = self._aliased_input(self.graph[renamed.name])
        if alias is not None and valid[self.graph.index[alias]]:
            return Ref(alias)
        raise self._unreachable(side, self.graph.index[renamed.name], valid)

    def _aliased_input(self, node: Node) -> str | None:
        """The destination of a copy_ in the backward, or the argument that a higher-order op (a Triton kernel)
        mutates, seen through a getitem and at most one view."""
        if node.target == COPY:
            destination = node.args[0] if self.graph.index[node.name] in self._barred["forward"] else None
            return destination.name if isinstance(destination, Ref) else None
        if node.target in ("aten.view.default", "aten.reshape.default") and isinstance(node.args[0], Ref):
            node = self.graph[node.args[0].name]
        if node.target != GETITEM or not isinstance(node.args[0], Ref):
            return None
        given = dict(self.graph[node.args[0].name].kwargs).get("kwargs")
        argument = dict(given.items).get(str(node.args[1])) if isinstance(given, Mapping) else None
        return argument.name if isinstance(argument, Ref) else None

    def _unreachable(self, side: str, position: int, valid: bytearray) -> VerificationError:
        nodes = self.graph.nodes
        path = [position]
        while missing := [source for source in self.inputs_of[path[-1]] if not valid[source]]:
            path.append(missing[0])
        chain = " <- ".join(nodes[p].name for p in path)
        return VerificationError(
            f"the {side} returns {nodes[position].name}, which it cannot compute",
            why=f"it needs {nodes[path[-1]].name} ({chain}), which is neither saved nor an input of the {side}",
            fix="this plan is wrong: report it with the record (aotcli trace -o)",
        )

    def without_dead_collectives(self, ops: Sequence[int], outputs: Sequence[Arg]) -> list[int]:
        """Collectives that nothing reads taken out: every rank drops the same ones."""
        read = set(self.positions(outputs))
        kept: list[int] = []
        for position in reversed(ops):
            if position in read or Tag.COLLECTIVE not in self.graph.nodes[position].tags:
                kept.append(position)
                read.update(self.inputs_of[position])
        kept.reverse()
        return kept

    def node(self, position: int) -> Node:
        """A node whose arguments name the nodes that are left."""
        node = self.graph.nodes[position]
        if not any(source in self._stands_for for source in self.graph.inputs_of[position]):
            return node
        kwargs = tuple((key, map_refs(arg, self._names)) for key, arg in node.kwargs)
        return replace(node, args=tuple(map_refs(arg, self._names) for arg in node.args), kwargs=kwargs)


def is_backward_state(node: Node) -> bool:
    """Whether a placeholder is the object through which hooks of the backward get their state."""
    return isinstance(node.value, OpaqueSpec) and node.value.kind == "backward_state"
