"""A decision about one joint graph: what is saved for the backward, what is recomputed, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from aotcli.ir.tensor import Value


class SavedKind(StrEnum):
    """How a saved value travels from forward to backward."""

    TENSOR = "tensor"
    SYMINT = "symint"
    OPAQUE = "opaque"


class Category(StrEnum):
    """Whose bytes a saved value's storage is: only ACTIVATION is memory that saving costs."""

    ACTIVATION = "activation"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    INPUT = "input"
    OUTPUT = "output"
    NONE = "none"  # symints and opaque objects


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a value is saved. `rule` is short and stable (``compute intensive``, ``reduction``); `text` is a phrase."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class SavedValue:
    """One value that the forward hands to the backward.

    `id` is the node's position in the canonical (fingerprinted) order. `nbytes` is what saving it costs: the bytes of
    its storage, or 0 where an earlier saved value has the same storage. `users` are the backward nodes that read it.
    """

    id: int
    name: str
    op: str
    kind: SavedKind
    category: Category
    value: Value
    nbytes: int
    storage: int
    module: str | None
    module_type: str | None
    source: str | None
    reason: Reason
    users: tuple[str, ...]
    is_input: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What a strategy decides, before the split is worked out.

    `saved` are node names with reasons, in graph order (symints and opaque values among them). `replaced` maps nodes
    that common-subexpression elimination removed to the node that stands for them. `removed` are nodes that
    dead-code removal dropped. `checkpoint` overrides the policies of nodes (forced saves). `bans` and `weights` are
    the heuristic's evidence, by node name; `cut_value` is the capacity of the minimum cut. `keep_order` leaves the
    backward in the order of tracing instead of moving recomputed nodes down to where they are needed;
    `drop_dead_collectives` removes collectives that nothing reads: PyTorch's default partitioner does both. `order` is
    the backward's order where it is not PyTorch's (one of aotcli/analysis/lower_peak.py).
    """

    saved: tuple[tuple[str, Reason], ...]
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])
    removed: frozenset[str] = frozenset()
    bans: Mapping[str, str] = field(default_factory=dict[str, str])
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    cut_value: float | None = None
    keep_order: bool = False
    drop_dead_collectives: bool = False
    order: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Partition:
    """The split of one region.

    `forward_nodes` and `backward_nodes` are op names in the order in which they run; `recomputed` are those in both.
    Byte totals are by unique storage: `saved_bytes` activations, `saved_input_bytes` parameters, buffers and inputs,
    `saved_output_bytes` saved values that are also outputs of the forward. `random_state_bytes`, in none of these, are
    the generator states that random ops among `recomputed` save. FLOPs leave out ops without a formula, which
    `unknown_flops` names. `peak_bytes` is live bytes above parameters and inputs, from step start to backward end,
    without op workspace: a lower bound. `keep_order`, `drop_dead_collectives` and `order` are the decision's.
    """

    fingerprint: str
    level: str
    strategy: str
    options: Mapping[str, object]
    saved: tuple[SavedValue, ...]
    recomputed: tuple[str, ...]
    forward_nodes: tuple[str, ...]
    backward_nodes: tuple[str, ...]
    saved_bytes: int
    saved_input_bytes: int
    saved_output_bytes: int
    forward_flops: int
    backward_flops: int
    recompute_flops: int
    unknown_flops: tuple[str, ...]
    peak_bytes: int
    cut_value: float | None = None
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])
    bans: Mapping[str, str] = field(default_factory=dict[str, str])
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    keep_order: bool = False
    drop_dead_collectives: bool = False
    random_state_bytes: int = 0
    order: str = ""
