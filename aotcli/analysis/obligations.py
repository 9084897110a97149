"""What the backward may only have by saving it: results that must not, or should not, be computed a second time.

Inputs, sizes and opaque objects; results of effectful and collective ops; what checkpointing asks to save; random
numbers that cannot be drawn again; ops whose shapes depend on data; and the first op after a read of an input that the
step changes in place (rerun later, it would read the new value).
"""

from __future__ import annotations

from collections.abc import Callable

from aotcli.analysis.mincut_mutation import mutated_reads
from aotcli.analysis.mincut_tags import checkpoint_policies
from aotcli.analysis.replay import is_replayable
from aotcli.analysis.rerun import Rerun
from aotcli.analysis.roles import Roles
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Reason
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec

VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})
_GETITEM = "operator.getitem"


class Obligations:
    """The obligations of one graph. `draw_again` says of a random op whether it may run again from a saved state."""

    def __init__(
        self, graph: JointGraph, roles: Roles, draw_again: Callable[[JointGraph, Node], bool] = is_replayable
    ) -> None:
        self._graph = graph
        self._roles = roles
        self._draw_again = draw_again
        self.policies = checkpoint_policies(graph)
        self._mutated = mutated_reads(graph, roles)
        self._rerun = Rerun(graph, self._mutated)
        self._bases = self._bases_of_saved_views()

    def reason(self, position: int) -> Reason | None:
        """Why a value of the forward is saved if the backward needs it; None where it may be computed again."""
        return self.given(position) or self.cannot_rerun(position)

    def given(self, position: int) -> Reason | None:
        """Why a value is no op's to compute, or costs nothing to save: a placeholder, a size, an opaque object."""
        node = self._graph.nodes[position]
        if node.kind is NodeKind.ATTR or node.kind in (NodeKind.TANGENT, NodeKind.BACKWARD_SEED):
            return None
        if isinstance(node.value, SymbolSpec) and (node.value.kind == "int" or node.is_placeholder):
            return Reason("size", "symbolic size")
        if node.is_placeholder:
            return Reason("primal", node.kind.value)
        if isinstance(node.value, OpaqueSpec):
            return Reason("opaque", "opaque object")
        return None

    def cannot_rerun(self, position: int) -> Reason | None:
        """Why the op behind a value does not run in the backward; for an element of a tuple, the op of the tuple."""
        position = self._origin(position)
        node = self._graph.nodes[position]
        if position in self._mutated.banned:
            source = self._mutated.source[position]
            return Reason("mutated input", f"reads {source}, changed in place")
        if Tag.COLLECTIVE in node.tags and not self.policies.must_recompute[position]:
            return Reason("collective", "collective")
        if self._rerun.has_effect(position):
            return Reason("effect", "has an effect")
        if self.policies.must_save[position] and not node.tags & VIEWS:
            return Reason("must save", self.policies.cause[position])
        if position in self._bases:
            return Reason("must save", f"base of {self._bases[position]}")
        if self._rerun.is_random(position) and not self._may_draw_again(position):
            return Reason("random", "random")
        if self._rerun.is_data_dependent(position):
            return Reason("data-dependent shape", "data-dependent shape")
        return None

    def _origin(self, position: int) -> int:
        """The op that makes a value: for an element of a tuple, the op that makes the tuple."""
        graph = self._graph
        while graph.nodes[position].target == _GETITEM and not self.policies.must_save[position]:
            position = graph.inputs_of[position][0]
        return position

    def _may_draw_again(self, position: int) -> bool:
        """Whether a random op may run in the backward: with its state, or there alone."""
        if self.policies.must_recompute[position] or self._roles.unclaimed[position]:
            return True
        return self._draw_again(self._graph, self._graph.nodes[position])

    def _bases_of_saved_views(self) -> dict[int, str]:
        """Saving a view keeps what it looks at: the demand falls on the base."""
        graph = self._graph
        bases: dict[int, str] = {}
        for position, node in enumerate(graph.nodes):
            if self.policies.must_save[position] and node.tags & VIEWS:
                base = position
                while graph.nodes[base].tags & VIEWS and graph.inputs_of[base]:
                    base = graph.inputs_of[base][0]
                bases[self._origin(base)] = node.name
        return bases
