"""Which ops the heuristic may recompute, fuse, or look through.

`inductor` is the set of the installed PyTorch, written into the record's tags at capture. `nvfuser` is the narrower set
that the published heuristic used for the nvFuser compiler (PyTorch 2.0 to 2.3, `min_cut_rematerialization_partition`
with compiler="nvfuser"): fewer creation, indexing and shape ops may be recomputed, and only three ops count as views.
It is data here, names without their overload.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph, NodeKind, Tag

OP_SETS = ("inductor", "nvfuser")

_NVFUSER_VIEW = frozenset({"aten.squeeze", "aten.unsqueeze", "aten.alias"})

_NVFUSER_ATEN = (
    "add sub div atan2 mul max min pow remainder fmod __and__ __or__ __xor__ __lshift__ __rshift__ eq ne ge gt le lt "
    "abs bitwise_not ceil floor frac neg relu round silu trunc log log10 log1p log2 lgamma exp expm1 erf erfc cos acos "
    "cosh sin asin sinh tan atan tanh atanh sqrt rsqrt reciprocal sigmoid softplus threshold threshold_backward clamp "
    "where lerp addcmul gelu gelu_backward sum mean _grad_sum_to_size sum_to_size amax to type_as squeeze unsqueeze "
    "rsub _to_copy alias zeros_like"
)

_SYMBOLIC_FUNCTIONS = "sqrt cos cosh sin sinh tan tanh asin acos atan log2"

_SYMBOLIC_OPERATORS = (
    "add sub mul mod pow and_ or_ xor truediv floordiv lshift rshift pos eq ne gt lt le ge neg abs getitem"
)

_NVFUSER_RECOMPUTABLE = frozenset(
    [f"aten.{name}" for name in _NVFUSER_ATEN.split()]
    + [f"operator.{name}" for name in _SYMBOLIC_OPERATORS.split()]
    + [f"torch.sym_{name}" for name in ("not", "float", "min", "max", "ite")]
    + [f"torch._sym_{name}" for name in _SYMBOLIC_FUNCTIONS.split()]
    + ["math.floor", "math.trunc", "math.ceil", "builtins.round"]
)

_NVFUSER_COMPUTE_INTENSIVE = frozenset(
    {
        "aten.mm",
        "aten.convolution",
        "aten.convolution_backward",
        "aten.bmm",
        "aten.addmm",
        "aten._scaled_dot_product_flash_attention",
        "aten._scaled_dot_product_efficient_attention",
        "aten.upsample_bilinear2d",
    }
)

_RANDOM = frozenset({"aten.native_dropout", "aten.rand_like", "aten.randn_like"})

_OP_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What the chosen sets say about each node, by position. Only ops are members of a set."""

    recomputable: list[bool]
    fusible: list[bool]
    view: list[bool]
    random: list[bool]
    compute_intensive: list[bool]


def op_facts(graph: JointGraph, op_set: str = "inductor", recomputable_ops: str = "") -> OpFacts:
    """Set membership of every node.

    `recomputable_ops` is a comma list that replaces the recomputable set (``aten.mul,gelu``: ``aten.`` may be left out,
    and so may the overload). Fusible is recomputable or random. Raises StrategyError for an unknown set or a name that
    is not an op's.
    """
    if op_set not in OP_SETS:
        raise StrategyError(
            f"unknown op set {op_set!r}",
            why="it names the ops that mincut may recompute",
            fix=f"one of: {', '.join(OP_SETS)}",
        )
    found = _tagged(graph) if op_set == "inductor" else _published(graph)
    if not recomputable_ops:
        return found
    names = _op_names(recomputable_ops)
    chosen = [node.kind is NodeKind.OP and (node.target in names or node.packet in names) for node in graph.nodes]
    fusible = [a or b for a, b in zip(chosen, found.random, strict=True)]
    return dataclasses.replace(found, recomputable=chosen, fusible=fusible)


def _tagged(graph: JointGraph) -> OpFacts:
    tags = [node.tags for node in graph.nodes]
    return OpFacts(
        recomputable=[Tag.RECOMPUTABLE in each for each in tags],
        fusible=[Tag.FUSIBLE in each for each in tags],
        view=[Tag.VIEW in each for each in tags],
        random=[Tag.RANDOM_OP in each for each in tags],
        compute_intensive=[Tag.COMPUTE_INTENSIVE in each for each in tags],
    )


def _published(graph: JointGraph) -> OpFacts:
    packets = [node.packet if node.kind is NodeKind.OP else "" for node in graph.nodes]
    recomputable = [
        packet in _NVFUSER_RECOMPUTABLE or Tag.POINTWISE in node.tags
        for packet, node in zip(packets, graph.nodes, strict=True)
    ]
    random = [packet in _RANDOM for packet in packets]
    return OpFacts(
        recomputable=recomputable,
        fusible=[a or b for a, b in zip(recomputable, random, strict=True)],
        view=[packet in _NVFUSER_VIEW for packet in packets],
        random=random,
        compute_intensive=[packet in _NVFUSER_COMPUTE_INTENSIVE for packet in packets],
    )


def _op_names(text: str) -> frozenset[str]:
    names: set[str] = set()
    for part in text.split(","):
        name = part.strip()
        if not _OP_NAME.fullmatch(name):
            raise StrategyError(
                f"{name!r} is not the name of an op",
                why="recomputable-ops is a comma list of ops, with or without overload",
                fix="for instance aten.mul,aten.gelu,operator.getitem",
            )
        names.add(name if "." in name else f"aten.{name}")
    return frozenset(names)
