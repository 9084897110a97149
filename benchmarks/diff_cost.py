"""What it costs to pair the nodes of two graphs of 30,000 nodes, and whether the pairs are right.

The graph is a traced Llama; the other is the same with other names and one edit. A process of its own reads the record,
edits it and pairs, so that its peak is that of the pairing and of two graphs.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from aotcli.analysis.matching import match_graphs
from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref, map_refs
from aotcli.ir.serial import read_trace
from aotcli.ir.tensor import TensorSpec, Value
from benchmarks.measure import Figure, aotcli, elapsed, report, run_process, spread

MODEL = ("hf:benchmarks/llama.json", "--dtype", "bfloat16", "--set", "batch=1", "--set", "seq=512")
LAYERS = 127
LEAST_NODES = 30_000
MOST_S = 2.0
MOST_BYTES = 500e6
LEAST_RIGHT = 0.98
ROUNDS = 3


def unchanged(graph: JointGraph) -> list[Node]:
    return list(graph.nodes)


def one_inserted(graph: JointGraph) -> list[Node]:
    """An op after every matrix product."""
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    for node in graph.nodes:
        nodes.append(_rewired(node, rename))
        if node.target == "aten.mm.default":
            rename[node.name] = f"{node.name}, cloned"
            nodes.append(
                replace(nodes[-1], name=rename[node.name], target="aten.clone.default", args=(Ref(node.name),))
            )
    return nodes


def a_tenth_replaced(graph: JointGraph) -> list[Node]:
    """A tenth of the ops are others."""
    rng = random.Random(0)
    ops = [node.kind is NodeKind.OP and node.target != "operator.getitem" for node in graph.nodes]
    return [
        replace(node, target="aten.other.default") if op and rng.random() < 0.1 else node
        for node, op in zip(graph.nodes, ops, strict=True)
    ]


def another_dtype(graph: JointGraph) -> list[Node]:
    return [replace(node, value=_recast(node.value)) for node in graph.nodes]


EDITS: tuple[Callable[[JointGraph], list[Node]], ...] = (unchanged, one_inserted, a_tenth_replaced, another_dtype)


def _recast(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(_recast(part) for part in value)
    if isinstance(value, TensorSpec) and value.dtype == "bfloat16":
        return replace(value, dtype="float16")
    return value


def _rewired(node: Node, rename: dict[str, str]) -> Node:
    args = tuple(map_refs(arg, rename) for arg in node.args)
    kwargs = tuple((key, map_refs(arg, rename)) for key, arg in node.kwargs)
    return replace(node, name=rename.get(node.name, node.name), args=args, kwargs=kwargs)


def measure(record: Path) -> None:
    """Print, as JSON, the nodes of the record, and for each edit the seconds of each round and the share of pairs that
    are right."""
    (graph,) = read_trace(record).regions
    found: dict[str, tuple[list[float], float]] = {}
    for edit in EDITS:
        nodes = edit(graph)
        truth = {node.name: position for position, node in enumerate(nodes)}
        rename = {node.name: f"n{position}" for position, node in enumerate(nodes)}
        other = replace(graph, nodes=tuple(_rewired(node, rename) for node in nodes), fingerprint="")
        del nodes, rename
        # Copies, so that nothing of a graph is known from the round before.
        seconds = [elapsed(lambda: match_graphs(replace(graph), replace(other))) for _ in range(ROUNDS)]  # noqa: B023
        pairing = match_graphs(graph, other)
        right = sum(truth[node.name] == j for node, j in zip(graph.nodes, pairing.right_of, strict=True))
        found[edit.__name__] = (seconds, right / len(graph.nodes))
    print(json.dumps([len(graph.nodes), found]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "llama.aot.json.gz"
        aotcli("trace", *MODEL, "--set", f"num_hidden_layers={LAYERS}", "--no-cache", "-o", record)
        finished = run_process(sys.executable, "-m", "benchmarks.diff_cost", record)
    nodes, found = json.loads(finished.stdout)
    if nodes < LEAST_NODES:
        raise AssertionError(f"the benchmark wants {LEAST_NODES:,} joint nodes and got {nodes:,}")
    slowest = max(median(seconds) for seconds, _ in found.values())
    least = min(right for _, right in found.values())
    what = f"Llama of {LAYERS} layers, {nodes:,} joint nodes, level inductor"
    each = "; ".join(f"{name.replace('_', ' ')} {spread(seconds)}" for name, (seconds, _) in found.items())
    shares = "; ".join(f"{name.replace('_', ' ')} {right:.2%}" for name, (_, right) in found.items())
    report(
        [
            Figure(
                f"Pairing the nodes of two graphs of {LEAST_NODES:,} takes at most {MOST_S:.0f} s",
                f"{slowest:.2f} s",
                slowest <= MOST_S,
                f"the slowest of: {each}; {what}, {ROUNDS} rounds each",
            ),
            Figure(
                f"and at most {MOST_BYTES / 1e6:.0f} MB, both graphs included",
                f"{finished.peak_bytes / 1e6:.0f} MB",
                finished.peak_bytes <= MOST_BYTES,
                "the peak of the process that reads the record, edits it and pairs",
            ),
            Figure(
                f"At least {LEAST_RIGHT:.0%} of the nodes get the partner that they have in truth",
                f"{least:.2%}",
                least >= LEAST_RIGHT,
                shares,
            ),
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
    else:
        main()
