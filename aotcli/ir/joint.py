"""The joint forward/backward graph as frozen, torch-free data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from aotcli.ir.tensor import Value


class NodeKind(StrEnum):
    """What a node is. The first six are placeholders of the joint graph."""

    PARAM = "param"
    BUFFER = "buffer"
    INPUT = "input"
    TANGENT = "tangent"
    SEED = "seed"  # forward seed or offset of functionalized random state
    BACKWARD_SEED = "backward_seed"
    ATTR = "attr"  # get_attr: a constant tensor, or a graph nested in a higher-order op
    OP = "op"
    OUTPUT = "output"


PRIMAL_KINDS = frozenset({NodeKind.PARAM, NodeKind.BUFFER, NodeKind.INPUT})
PLACEHOLDER_KINDS = PRIMAL_KINDS | {NodeKind.TANGENT, NodeKind.SEED, NodeKind.BACKWARD_SEED}


class Tag(StrEnum):
    """Facts about a node that planning needs and only torch knows, written down at capture."""

    POINTWISE = "pointwise"  # some overload of the op carries torch.Tag.pointwise
    RECOMPUTABLE = "recomputable"  # in the partitioner's recomputable set
    FUSIBLE = "fusible"  # in the partitioner's fusible set
    COMPUTE_INTENSIVE = "compute_intensive"
    VIEW = "view"  # in the partitioner's view set
    VIEW_SCHEMA = "view_schema"  # the op's schema says that the result aliases an argument
    RANDOM = "random"  # torch.Tag.nondeterministic_seeded and not an op whose dropout_p is 0
    RANDOM_OP = "random_op"  # in the partitioner's random set
    NO_CSE = "no_cse"  # never merged by fx_graph_cse: random ops, aten.empty
    IMPURE = "impure"  # Node.is_impure(): kept by dead-code removal
    EFFECTFUL = "effectful"  # Node.is_impure(impure_random=False)
    MUTABLE = "mutable"  # the op's schema mutates an argument
    COLLECTIVE = "collective"  # namespace _c10d_functional
    WITH_EFFECTS = "with_effects"
    NON_BUILTIN = "non_builtin"  # an op from outside torch
    NO_VERSION_CHECK = "no_version_check"  # meta["saved_tensor_with_no_vc_check"]
    BACKWARD_HOOK = "backward_hook"  # meta["has_backward_hook"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to another node, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant that JSON has no type for: `kind` is dtype, device, layout, memory_format, float, complex, op,
    symbol (an expression), or other; `text` is how Python would write it (`torch.float32`, `inf`)."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Slice:
    """A `slice` among a node's arguments."""

    start: Arg
    stop: Arg
    step: Arg


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dict among a node's arguments, in its order."""

    items: tuple[tuple[str, Arg], ...]


Arg = None | bool | int | float | str | Ref | Const | Slice | Mapping | tuple["Arg", ...]
"""A node's argument. Lists and tuples are both tuples here."""


def arg_refs(arg: Arg) -> Iterator[str]:
    """Names of the nodes that an argument refers to, in order, repeats included."""
    if isinstance(arg, Ref):
        yield arg.name
    elif isinstance(arg, tuple):
        for part in arg:
            yield from arg_refs(part)
    elif isinstance(arg, Slice):
        for part in (arg.start, arg.stop, arg.step):
            yield from arg_refs(part)
    elif isinstance(arg, Mapping):
        for _, part in arg.items:
            yield from arg_refs(part)


def map_refs(arg: Arg, rename: dict[str, str]) -> Arg:
    """`arg` with every reference renamed where `rename` has it."""
    if isinstance(arg, Ref):
        new = rename.get(arg.name)
        return arg if new is None else Ref(new)
    if isinstance(arg, tuple):
        return tuple(map_refs(part, rename) for part in arg)
    if isinstance(arg, Slice):
        return Slice(map_refs(arg.start, rename), map_refs(arg.stop, rename), map_refs(arg.step, rename))
    if isinstance(arg, Mapping):
        return Mapping(tuple((key, map_refs(part, rename)) for key, part in arg.items))
    return arg


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the joint graph.

    `target` is the op in the field's spelling (``aten.mm.default``, ``operator.getitem``), a placeholder's own name,
    or an attribute's path. `module` is the path of the owning module ("" is the model itself, None is unknown),
    `module_type` its class; for a backward node, those of the forward module it belongs to. `source` is ``file:line``.
    `partitioner_tag` is what tracing wrote (is_forward, is_backward, must_be_in_forward, must_be_in_backward).
    `checkpoint` is the policy from activation checkpointing (MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE,
    PREFER_RECOMPUTE). `mutable_args` are the keyword arguments that a higher-order op clones before it mutates them.
    `binds` is the symbol that this node is the definition of. `flops` is None where no formula is known for an op
    that computes, and 0 for ops that are not counted (pointwise, views). For a parameter or buffer, `origin` is its
    qualified name in the model; for an input, its name; for a gradient output nothing.
    """

    name: str
    kind: NodeKind
    target: str
    args: tuple[Arg, ...] = ()
    kwargs: tuple[tuple[str, Arg], ...] = ()
    value: Value = None
    module: str | None = None
    module_type: str | None = None
    source: str | None = None
    code: str | None = None
    origin: str | None = None
    partitioner_tag: str | None = None
    checkpoint: str | None = None
    ac_graph_id: int | None = None
    region_budget: float | None = None
    tags: frozenset[Tag] = frozenset()
    mutable_args: tuple[str, ...] = ()
    binds: str | None = None
    flops: int | None = 0

    @property
    def refs(self) -> tuple[str, ...]:
        """Names of the nodes this one reads, each once, in order."""
        # Called for every node of large graphs: most arguments are references or plain constants.
        found: dict[str, None] = {}
        for arg in (*self.args, *(arg for _, arg in self.kwargs)):
            if isinstance(arg, Ref):
                found[arg.name] = None
            elif isinstance(arg, (tuple, Slice, Mapping)):
                found.update(dict.fromkeys(arg_refs(arg)))
        return tuple(found)

    @property
    def is_placeholder(self) -> bool:
        return self.kind in PLACEHOLDER_KINDS

    @property
    def packet(self) -> str:
        """The op without its overload: ``aten.mm`` of ``aten.mm.default``."""
        parts = self.target.split(".")
        return ".".join(parts[:-1]) if len(parts) == 3 else self.target

    @property
    def must_recompute(self) -> bool:
        """Whether checkpointing asks for this value not to be saved (PyTorch treats PREFER as MUST)."""
        return self.checkpoint in ("MUST_RECOMPUTE", "PREFER_RECOMPUTE")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbolic size: its stable name, where it comes from (``L['x'].size()[0]``), its traced value and range."""

    name: str
    source: str
    hint: int | float | None = None
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True)
class JointGraph:
    """One captured region.

    `nodes` are in topological order; the last is the OUTPUT, whose single argument is the tuple of all outputs:
    `num_forward_outputs` of the forward, then one per primal (a gradient or None). `static_inputs` names the
    placeholders that live across steps (parameters, buffers). `subgraphs` holds the graphs of higher-order ops by
    the target of their ATTR node. `level` is "inductor" or "aten". `has_backward` is False for a forward-only region.
    `mutated` names primals that the step changes in place.
    """

    nodes: tuple[Node, ...]
    num_forward_outputs: int
    level: str
    static_inputs: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    subgraphs: tuple[tuple[str, JointGraph], ...] = ()
    has_backward: bool = True
    mutated: tuple[str, ...] = ()
    name: str = "region0"
    fingerprint: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"<JointGraph {self.name}: {len(self.nodes)} nodes, level {self.level}>"

    def with_nodes(self, nodes: tuple[Node, ...], inputs_of: tuple[tuple[int, ...], ...]) -> JointGraph:
        """This graph with other nodes. A pass that renumbers nodes knows their inputs: finding them again would take
        longer than the pass."""
        graph = replace(self, nodes=nodes)
        graph.__dict__["inputs_of"] = inputs_of
        return graph

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each node by name."""
        return {node.name: position for position, node in enumerate(self.nodes)}

    def __getitem__(self, name: str) -> Node:
        return self.nodes[self.index[name]]

    @cached_property
    def inputs_of(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the positions of the nodes it reads (each once, in argument order)."""
        index = self.index
        return tuple(tuple(index[name] for name in node.refs) for node in self.nodes)

    @cached_property
    def users_of(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the positions of the nodes that read it, in graph order."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for position, inputs in enumerate(self.inputs_of):
            for source in inputs:
                users[source].append(position)
        return tuple(tuple(each) for each in users)

    @cached_property
    def outputs(self) -> tuple[Arg, ...]:
        """All outputs: references, constants or None."""
        if not self.nodes or self.nodes[-1].kind is not NodeKind.OUTPUT:
            return ()
        args = self.nodes[-1].args
        return args[0] if len(args) == 1 and isinstance(args[0], tuple) else args

    @property
    def forward_outputs(self) -> tuple[Arg, ...]:
        return self.outputs[: self.num_forward_outputs]

    @property
    def backward_outputs(self) -> tuple[Arg, ...]:
        return self.outputs[self.num_forward_outputs :]

    @property
    def placeholders(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_placeholder)

    @cached_property
    def symbol_names(self) -> frozenset[str]:
        return frozenset(symbol.name for symbol in self.symbols)
