"""Which ops the heuristic may recompute, fuse, or look through.

`inductor` is the set of the installed PyTorch, written into the record's tags at capture. `nvfuser` is the narrower set
that the published heuristic used for the nvFuser compiler (PyTorch 2.0 to 2.3, `min_cut_rematerialization_partition`
with compiler="nvfuser"): fewer creation, indexing and shape ops may be recomputed, and only three ops count as views.
It is data here, names without their overload.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag

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
    tests = _membership(op_set)
    if recomputable_ops:
        names = _op_names(recomputable_ops)
        tests["recomputable"] = lambda node: node.target in names or node.packet in names
        tests["fusible"] = lambda node: tests["recomputable"](node) or tests["random"](node)
    found = {
        fact: [node.kind is NodeKind.OP and is_member(node) for node in graph.nodes]
        for fact, is_member in tests.items()
    }
    return OpFacts(**found)


_Membership = Callable[[Node], bool]


def _membership(op_set: str) -> dict[str, _Membership]:
    if op_set == "inductor":
        return {
            "recomputable": lambda node: Tag.RECOMPUTABLE in node.tags,
            "fusible": lambda node: Tag.FUSIBLE in node.tags,
            "view": lambda node: Tag.VIEW in node.tags,
            "random": lambda node: Tag.RANDOM_OP in node.tags,
            "compute_intensive": lambda node: Tag.COMPUTE_INTENSIVE in node.tags,
        }
    if op_set == "nvfuser":
        return {
            "recomputable": _nvfuser_recomputable,
            "fusible": lambda node: _nvfuser_recomputable(node) or node.packet in _RANDOM,
            "view": lambda node: node.packet in _NVFUSER_VIEW,
            "random": lambda node: node.packet in _RANDOM,
            "compute_intensive": lambda node: node.packet in _NVFUSER_COMPUTE_INTENSIVE,
        }
    raise StrategyError(
        f"unknown op set {op_set!r}",
        why="it names the ops that mincut may recompute",
        fix=f"one of: {', '.join(OP_SETS)}",
    )


def _nvfuser_recomputable(node: Node) -> bool:
    return Tag.POINTWISE in node.tags or node.packet in _NVFUSER_RECOMPUTABLE


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
