"""Ops as people call them, and the op that really made a value's memory."""

from __future__ import annotations

from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.tensor import TensorSpec

_GETITEM = "operator.getitem"
_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})

_ATTENTION_RESULTS = ("attention out", "attention lse")
_NORM_RESULTS = ("{} norm", "{} norm mean", "{} norm rstd")
_NAMES = {
    "convert_element_type": "cast",
    "_to_copy": "cast",
    "inductor_random": "random",
    "inductor_seeds": "random seeds",
    "inductor_lookup_seed": "random seed",
    "native_dropout": "dropout",
    "_log_softmax": "log softmax",
    "_softmax": "softmax",
    "_unsafe_index": "index",
    "where": "where",
}
_RESULTS = {
    "native_dropout": ("dropout", "dropout mask"),
    "var_mean": ("variance", "mean"),
    "nll_loss_forward": ("nll loss", "nll total weight"),
    "max_pool2d_with_indices": ("max pool", "max pool indices"),
    "_low_memory_max_pool_with_offsets": ("max pool", "max pool offsets"),
}


def op_label(target: str, item: int | None = None) -> str:
    """A short label of an op, or of its result number `item`: ``addmm``, ``layer norm``, ``attention lse``."""
    parts = target.split(".")
    name = parts[1] if len(parts) >= 2 else target
    plain = name.strip("_")
    if item is not None:
        results = _results(name)
        if item < len(results):
            return results[item]
        return f"{_NAMES.get(name, plain.replace('_', ' '))} [{item}]"
    if "dot_product" in name and "attention" in name:
        return "attention"
    return _NAMES.get(name, plain.replace("_", " "))


def _results(name: str) -> tuple[str, ...]:
    if "dot_product" in name and "attention" in name:
        return _ATTENTION_RESULTS
    for norm in ("layer", "group", "batch"):
        if name in (f"native_{norm}_norm", f"_native_{norm}_norm_legit_functional", f"{norm}_norm_with_update"):
            return tuple(text.format(norm) for text in _NORM_RESULTS)
    return _RESULTS.get(name, ())


def storage_maker(graph: JointGraph, name: str) -> Node:
    """The node that made the memory of value `name`: follows views back while the storage is the same."""
    node = graph[name]
    value = node.value
    if not isinstance(value, TensorSpec) or value.storage < 0:
        return node
    while node.kind is NodeKind.OP and node.refs:
        source = graph[node.refs[0]]
        if node.target == _GETITEM:
            # One result of an op with several is where the memory starts, unless the op only makes views.
            if _VIEWS.isdisjoint(source.tags) or not source.refs:
                return node
            source = graph[source.refs[0]]
        if not isinstance(source.value, TensorSpec) or source.value.storage != value.storage:
            return node
        node = source
    return node


def node_label(graph: JointGraph, node: Node) -> str:
    """What a node is, for a reader: its op; for one result of several, which; for a placeholder, its own name."""
    if node.kind is not NodeKind.OP:
        return node.origin or node.name
    if node.target == _GETITEM and node.refs:
        item = node.args[1] if len(node.args) > 1 else None
        return op_label(graph[node.refs[0]].target, item if isinstance(item, int) else None)
    return op_label(node.target)
