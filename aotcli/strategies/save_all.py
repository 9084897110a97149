"""Save everything that the backward reads, and recompute only what checkpointing asks for.

The rules are those of PyTorch's `default_partition` (torch._functorch.partitioners, 2.13), which is what eager autograd
comes closest to: sizes are saved instead of tensors of which only sizes are read, elements instead of tuples, and what
is left over after the cut because nothing reads it is not saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble
from aotcli.analysis.mincut_conflict import annotation_conflict
from aotcli.analysis.mincut_tags import Policies, checkpoint_policies
from aotcli.analysis.roles import classify
from aotcli.errors import StrategyError, VerificationError
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec
from aotcli.strategies._contract import Strategy

_SIZE = Reason("size", "symbolic size")
_EFFECT = Reason("effect", "has an effect")
_OPAQUE = Reason("opaque", "opaque object")
_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})

# Checks and profiler marks may run again, or not at all, without changing a result.
_NEVER_SAVED = frozenset(
    {
        "aten._assert_scalar.default",
        "aten._assert_async.default",
        "aten._assert_async.msg",
        "profiler._record_function_enter_new.default",
        "profiler._record_function_enter.default",
        "profiler._record_function_exit.default",
        "profiler._record_function_exit._RecordFunction",
    }
)
_WAIT_TENSOR = "_c10d_functional.wait_tensor.default"


@dataclass(frozen=True)
class SaveAll(Strategy):
    """See the module's docstring."""

    name: ClassVar[str] = "save-all"
    summary: ClassVar[str] = "save every tensor that the backward reads, as PyTorch's default partitioner does"
    aliases: ClassVar[tuple[str, ...]] = ("default",)

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        """Raises PlanImpossibleError where annotations contradict each other (PyTorch's own fails an assertion)."""
        try:
            return assemble(graph, decide(graph), strategy=self.name, options=self.options)
        except VerificationError:
            conflict = annotation_conflict(graph)
            if conflict is None:
                raise
            raise conflict from None


def decide(graph: JointGraph) -> Decision:
    """What `default_partition` saves. Raises StrategyError where the forward makes a value of no known kind."""
    if not graph.has_backward:
        return Decision(saved=(), keep_order=True)
    forward = _forward(graph)
    policies = checkpoint_policies(graph, save_block_inputs=True)
    saved: dict[str, Reason] = {}
    for position, in_forward in enumerate(forward):
        if in_forward:
            _consider(graph, position, forward, policies, saved)
    for name in [name for name in saved if _only_asserted(graph, name)]:
        del saved[name]
    order = graph.index
    recomputes = any(node.must_recompute for node in graph.nodes)
    return Decision(
        saved=tuple(sorted(saved.items(), key=lambda item: order[item[0]])),
        keep_order=not recomputes,
        drop_dead_collectives=True,
    )


def _forward(graph: JointGraph) -> list[bool]:
    """Which nodes belong to the forward by their place in the graph: all up to the last one traced there."""
    last = -1
    tagged = False
    for position, node in enumerate(graph.nodes):
        is_forward = node.partitioner_tag == "is_forward"
        tagged = tagged or (is_forward and node.kind is NodeKind.OP)
        if is_forward or node.kind in PRIMAL_KINDS or node.kind is NodeKind.SEED:
            last = position
    if not tagged:  # a graph made by hand: all that no tangent reaches
        closure = classify(graph).tangents_closure
        return [not closure[p] and node.partitioner_tag != "is_backward" for p, node in enumerate(graph.nodes)]
    return [p <= last and node.kind is not NodeKind.TANGENT for p, node in enumerate(graph.nodes)]


def _consider(
    graph: JointGraph, position: int, forward: list[bool], policies: Policies, saved: dict[str, Reason]
) -> None:
    """Save one value of the forward, or not. The order of the questions is PyTorch's."""
    node = graph.nodes[position]
    users = graph.users_of[position]
    if node.kind is NodeKind.ATTR and node.target in dict(graph.subgraphs):
        return
    if node.kind is NodeKind.OUTPUT or node.target in _NEVER_SAVED:
        return
    if isinstance(node.value, SymbolSpec):
        saved[node.name] = _SIZE
    elif users and all(graph.nodes[user].target == "operator.getitem" for user in users):
        return
    elif policies.must_save[position]:
        saved[node.name] = Reason("must save", policies.cause[position])
    elif _has_effect(node):
        saved[node.name] = _EFFECT
    elif isinstance(node.value, OpaqueSpec):
        saved[node.name] = _OPAQUE
    elif node.kind is NodeKind.OP and not isinstance(node.value, TensorSpec):
        if users:
            raise StrategyError(
                f"save-all cannot save {node.name} ({node.target})",
                why="its value is neither a tensor, a size, an opaque object, nor a tuple that is taken apart",
                fix="try --strategy mincut",
            )
    else:
        readers = [graph.nodes[user] for user in users if not forward[user]]
        if all(isinstance(reader.value, SymbolSpec) for reader in readers):
            saved.update(dict.fromkeys((reader.name for reader in readers), _SIZE))
        elif not policies.must_recompute[position]:
            saved[node.name] = _read_by(node, readers)


def _read_by(node: Node, readers: list[Node]) -> Reason:
    """An input is there anyway; of an activation, the op that reads it says most, and a view of it least."""
    if node.is_placeholder:
        return Reason("primal", node.kind.value)
    ops = [reader for reader in readers if reader.kind is NodeKind.OP]
    reader = next((each for each in ops if not each.tags & _VIEWS), ops[0] if ops else None)
    text = "read by backward" if reader is None else f"feeds bwd {reader.packet.rpartition('.')[2]}"
    return Reason("read by backward", text)


def _has_effect(node: Node) -> bool:
    """Whether running the op twice could be noticed. Waiting for a collective twice could not."""
    return node.kind is NodeKind.OP and Tag.EFFECTFUL in node.tags and node.target != _WAIT_TENSOR


def _only_asserted(graph: JointGraph, name: str) -> bool:
    """A truth value that only a run-time check reads."""
    position = graph.index[name]
    value = graph.nodes[position].value
    users = graph.users_of[position]
    if not (isinstance(value, SymbolSpec) and value.kind == "bool" and users):
        return False
    return all(graph.nodes[user].target == "aten._assert_scalar.default" for user in users)
