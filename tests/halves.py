"""Comparing modules that torch made with halves that our cut made, node by node, nested graphs included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotcli.analysis.cut import Half
from aotcli.ir.joint import Arg, Const, JointGraph, Node, NodeKind, Ref, map_refs

Described = tuple[str, str, str, Arg, Arg]
"""Name, kind, target, arguments and keyword arguments of a node, in the words of a record."""

# Ops that save and set random state, and how many arguments come before the op that they wrap.
_WRAPPERS = {"higher_order.run_and_save_rng_state": 0, "higher_order.run_with_rng_state": 1}
_KINDS = {"call_function": NodeKind.OP, "get_attr": NodeKind.ATTR}


def of_module(module: Any) -> tuple[list[str], list[Described], Arg]:
    """Placeholders, nodes and outputs of a module, read as a snapshot reads them."""
    from aotcli.capture.origins import Origins
    from aotcli.capture.snapshot import SnapshotContext, _Reader, target_text

    read = _Reader(module, SnapshotContext(Origins({}, Path.cwd()), "aten")).arg
    inputs: list[str] = []
    nodes: list[Described] = []
    outputs: Arg = ()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "output":
            outputs = read(tuple(node.args[0]))
        else:
            kwargs = tuple((key, read(each)) for key, each in node.kwargs.items())
            args = () if node.op == "get_attr" else read(node.args)
            nodes.append((node.name, _KINDS[node.op], target_text(node.target), args, kwargs))
    return inputs, nodes, outputs


def of_record(nodes: tuple[Node, ...]) -> list[Described]:
    return [
        (node.name, node.kind, node.target, node.args, node.kwargs)
        for node in nodes
        if node.kind in (NodeKind.OP, NodeKind.ATTR)
    ]


def by_place(inputs: list[str], nodes: list[Described], outputs: Arg) -> tuple[int, list[Any], Arg]:
    """A module or half with names replaced by places: torch numbers the nodes that it adds as names are free."""
    names = {name: f"%{place}" for place, name in enumerate([*inputs, *(name for name, *_ in nodes)])}
    described = [(target, map_refs(args, names), map_refs(kwargs, names)) for _, _, target, args, kwargs in nodes]
    return len(inputs), described, map_refs(outputs, names)


def without_replay(inputs: list[str], nodes: list[Described], outputs: Arg) -> tuple[list[str], list[Described], Arg]:
    """Random ops that save or set their state as the plain ops that they wrap, and without the states."""
    wrapped = {name: kind for name, _, kind, *_ in nodes if kind in _WRAPPERS}
    states = {name for name, _, _, args, _ in nodes if _takes(args, wrapped, 0)}
    plain: list[Described] = []
    renamed: dict[str, str] = {}
    for name, kind, target, args, kwargs in nodes:
        assert isinstance(args, tuple)
        if target in _WRAPPERS:
            skipped = _WRAPPERS[target]
            op = args[skipped]
            assert isinstance(op, Const)
            plain.append((name, kind, op.text, map_refs(args[skipped + 1 :], renamed), map_refs(kwargs, renamed)))
        elif _takes(args, wrapped, 1):
            renamed[name] = args[0].name  # type: ignore[union-attr]
        elif name not in states:
            plain.append((name, kind, target, map_refs(args, renamed), map_refs(kwargs, renamed)))
    assert isinstance(outputs, tuple)
    returned = tuple(map_refs(arg, renamed) for arg in outputs if not (isinstance(arg, Ref) and arg.name in states))
    return [name for name in inputs if not name.startswith("rng_state_output")], plain, returned


def _takes(args: Arg, wrapped: dict[str, str], item: int) -> bool:
    """Whether a node takes an element of what saving the state returns: (state, result)."""
    if not (isinstance(args, tuple) and len(args) == 2 and isinstance(args[0], Ref) and args[1] == item):
        return False
    return wrapped.get(args[0].name) == "higher_order.run_and_save_rng_state"


def assert_same_but_for_replay(half: Half, module: Any, where: str) -> None:
    """`module` is `half` with random ops wrapped so that they draw the same numbers in both halves."""
    ours = by_place(list(half.inputs), of_record(half.nodes), half.outputs)
    assert by_place(*without_replay(*of_module(module))) == ours, where


def assert_same(half: Half, module: Any, graph: JointGraph, where: str) -> None:
    """`module` has the placeholders, nodes, order, arguments and outputs of `half`."""
    inputs, nodes, outputs = of_module(module)
    assert inputs == list(half.inputs), f"{where}: inputs"
    ours = of_record(half.nodes)
    assert [name for name, *_ in nodes] == [name for name, *_ in ours], f"{where}: order"
    assert nodes == ours, where
    assert outputs == half.outputs, f"{where}: outputs"
    for target in {node.target for node in half.nodes if node.kind is NodeKind.ATTR}:
        assert_same_nested(getattr(module, target), dict(graph.subgraphs)[target], f"{where}: {target}")


def assert_same_nested(module: Any, graph: JointGraph, where: str) -> None:
    inputs, nodes, outputs = of_module(module)
    assert inputs == [node.name for node in graph.placeholders], where
    assert nodes == of_record(graph.nodes), where
    assert outputs == graph.outputs, where
    for target, inner in graph.subgraphs:
        assert_same_nested(getattr(module, target), inner, f"{where}: {target}")


def assert_same_modules(left: Any, right: Any, where: str) -> None:
    """Two modules have the same nodes in the same order, nested graphs included."""
    assert of_module(left) == of_module(right), where
    for node in left.graph.find_nodes(op="get_attr"):
        inner = getattr(left, node.target)
        if type(inner).__name__.endswith("GraphModule"):
            assert_same_modules(inner, getattr(right, node.target), f"{where}: {node.target}")
