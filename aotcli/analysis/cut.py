"""Cutting a joint graph into its forward and backward halves, without torch.

The halves equal, node by node, the modules that PyTorch makes for the same saved values (`_extract_fwd_bwd_modules` in
torch._functorch.partitioners, then its passes over the order). A saved value that the backward never reads is not
saved; sizes that saved tensors mention travel with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aotcli.analysis.extraction import COPY, GETITEM, Extraction, is_backward_state
from aotcli.analysis.lower_peak import reordered
from aotcli.analysis.run_order import mimic_autograd, raise_getitems
from aotcli.ir.joint import PRIMAL_KINDS, Arg, JointGraph, Node, NodeKind, Ref, Tag
from aotcli.ir.partition import Decision
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, identifiers

WAIT_TENSOR = "_c10d_functional.wait_tensor.default"


@dataclass(frozen=True)
class Half:
    """The forward or the backward: placeholders in calling order, nodes in run order, what it returns."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Arg, ...]


@dataclass(frozen=True)
class Halves:
    """A joint graph cut in two, and what passes from the first to the second.

    The forward returns its own outputs, then `saved_tensors` (those under a version check first, `version_checked` of
    them), `saved_opaque` and `saved_symints`. The backward takes symints, tensors, opaque values, tangents, seeds, and
    BackwardState objects. `merged_storages` maps the storage of a removed common subexpression to the one that stands
    for it.
    """

    forward: Half
    backward: Half
    saved_tensors: tuple[str, ...] = ()
    version_checked: int = 0
    saved_opaque: tuple[str, ...] = ()
    saved_symints: tuple[str, ...] = ()
    merged_storages: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def saved(self) -> tuple[str, ...]:
        """Everything that is saved, in the order in which the forward returns it."""
        return (*self.saved_tensors, *self.saved_opaque, *self.saved_symints)


def cut(graph: JointGraph, decision: Decision) -> Halves:
    """Cut `graph` for `decision`; the dead code and common subexpressions that it names are taken out first.

    Raises VerificationError where an output of a half needs a value that is neither saved nor computable there.
    """
    extraction = Extraction(graph, decision)
    if not graph.has_backward:
        inputs = [p for p, node in enumerate(graph.nodes) if node.is_placeholder]
        return Halves(_half(extraction, inputs, extraction.ops, graph.outputs), Half((), (), ()))
    backward_only = extraction.tangents + extraction.of_kind(NodeKind.BACKWARD_SEED)
    saved = _final_saved(extraction, decision, backward_only)
    forward_inputs = extraction.of_kind(*PRIMAL_KINDS) + extraction.of_kind(NodeKind.SEED)
    returned = (*graph.forward_outputs, *(Ref(graph.nodes[p].name) for p in saved.in_forward_order))
    backward_inputs = saved.in_backward_order + backward_only + extraction.backward_states

    forward, forward_outputs = extraction.extract("forward", forward_inputs, returned)
    backward, backward_outputs = extraction.extract("backward", backward_inputs, graph.backward_outputs)
    if decision.drop_dead_collectives:
        forward = extraction.without_dead_collectives(forward, forward_outputs)
        backward = extraction.without_dead_collectives(backward, backward_outputs)
    if not decision.keep_order:
        starts, copies = frozenset(extraction.tangents), extraction.named(COPY)
        backward = mimic_autograd(backward, extraction.inputs_of, starts, copies)
    if decision.order:
        backward = reordered(graph, decision.order, backward, extraction.inputs_of, frozenset(extraction.tangents))
    tensors = [graph.nodes[p] for p in saved.tensors]
    return Halves(
        _half(extraction, forward_inputs, forward, forward_outputs),
        _half(extraction, backward_inputs, backward, backward_outputs),
        tuple(node.name for node in tensors),
        sum(Tag.NO_VERSION_CHECK not in node.tags for node in tensors),
        tuple(graph.nodes[p].name for p in saved.opaque),
        tuple(graph.nodes[p].name for p in saved.symints),
        extraction.merged_storages(),
    )


def half_graph(graph: JointGraph, half: Half, name: str) -> JointGraph:
    """A half as a graph of its own, to be printed or drawn: saved values have become placeholders."""
    placeholders: list[Node] = []
    for each in half.inputs:
        node = graph[each]
        if not node.is_placeholder:
            node = replace(node, kind=NodeKind.INPUT, target=each, args=(), kwargs=(), flops=0)
        placeholders.append(node)
    output = Node("output", NodeKind.OUTPUT, "output", args=(half.outputs,))
    targets = {node.target for node in half.nodes if node.kind is NodeKind.ATTR}
    return replace(
        graph,
        nodes=(*placeholders, *half.nodes, output),
        num_forward_outputs=len(half.outputs),
        subgraphs=tuple((target, nested) for target, nested in graph.subgraphs if target in targets),
        has_backward=False,
        name=name,
        fingerprint="",
    )


def _half(extraction: Extraction, inputs: Sequence[int], ops: Sequence[int], outputs: Sequence[Arg]) -> Half:
    if extraction.graph.has_backward:
        ops = raise_getitems(inputs, ops, extraction.inputs_of, extraction.named(GETITEM))
    nodes = extraction.graph.nodes
    return Half(tuple(nodes[p].name for p in inputs), tuple(extraction.node(p) for p in ops), tuple(outputs))


@dataclass
class _Saved:
    """Positions of saved values, in the order of the calling convention."""

    tensors: list[int]
    opaque: list[int]
    symints: list[int]

    @property
    def in_forward_order(self) -> list[int]:
        return self.tensors + self.opaque + self.symints

    @property
    def in_backward_order(self) -> list[int]:
        return self.symints + self.tensors + self.opaque


def _final_saved(extraction: Extraction, decision: Decision, backward_only: list[int]) -> _Saved:
    """The decision's saved values without those that the backward never reads, and the sizes that they mention."""
    nodes = extraction.graph.nodes
    saved = _by_kind(extraction.graph, decision)
    inputs = saved.symints + saved.opaque + saved.tensors + backward_only
    ops, outputs = extraction.extract("backward", inputs, extraction.graph.backward_outputs)
    read = _read_by(extraction, ops, outputs)
    tensors = [p for p in saved.tensors if p in read and not is_backward_state(nodes[p])]
    checked = [p for p in tensors if Tag.NO_VERSION_CHECK not in nodes[p].tags]
    unchecked = [p for p in tensors if Tag.NO_VERSION_CHECK in nodes[p].tags]
    symints = [p for p in saved.symints if p in read]
    sized = [*tensors, *extraction.tangents]
    return _Saved(
        checked + unchecked, [p for p in saved.opaque if p in read], _with_bindings(extraction.graph, symints, sized)
    )


def _by_kind(graph: JointGraph, decision: Decision) -> _Saved:
    saved = _Saved([], [], [])
    for name, _ in decision.saved:
        position = graph.index[name]
        value = graph.nodes[position].value
        if isinstance(value, SymbolSpec):
            saved.symints.append(position)
        elif isinstance(value, OpaqueSpec) and value.kind != "backward_state":
            saved.opaque.append(position)
        else:
            saved.tensors.append(position)
    return saved


def _read_by(extraction: Extraction, ops: Sequence[int], outputs: Sequence[Arg]) -> set[int]:
    """What the nodes read; waiting for a collective whose result nothing reads does not count."""
    nodes = extraction.graph.nodes
    read = set(extraction.positions(outputs))
    for position in reversed(ops):
        if nodes[position].target != WAIT_TENSOR or position in read:
            read.update(extraction.inputs_of[position])
    return read


def _with_bindings(graph: JointGraph, symints: list[int], sized: list[int]) -> list[int]:
    """Saved symints, those that define a symbol first, with definitions added for symbols that only occur in the
    shapes of what the backward is handed: its compiler needs every symbol bound by an input."""
    if not graph.symbols and not symints:
        return symints
    nodes = graph.nodes
    binding = [p for p in symints if nodes[p].binds is not None]
    derived = [p for p in symints if nodes[p].binds is None]
    known = {nodes[p].binds for p in binding}
    definitions: dict[str, int] = {}
    for position, node in enumerate(nodes):
        if node.binds is not None:
            definitions.setdefault(node.binds, position)
    for position in (*derived, *sized):
        fresh = sorted(set(identifiers(nodes[position].value)) & definitions.keys() - known)
        binding.extend(definitions[symbol] for symbol in fresh)
        known.update(fresh)
    return binding + derived
