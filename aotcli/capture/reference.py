"""Running a partition function of torch's kind on a copy of a captured graph, and reading what it decided."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import fx

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.cut import Half, cut
from aotcli.analysis.dce import eliminate_dead
from aotcli.capture import torch_private_split as private
from aotcli.capture.recorder import LiveRegion
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.partition import Decision, Reason

PartitionFn = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]
_STATE_NAMES = ("rng_state_output", "fwd_rng_state", "bwd_rng_state")


@dataclass(frozen=True)
class ReferenceSplit:
    """What a partition function returned, what it left of the joint graph, and what it warned of."""

    forward: fx.GraphModule
    backward: fx.GraphModule
    remaining: frozenset[str]
    warnings: tuple[str, ...]


def run_partition_function(function: PartitionFn, live: LiveRegion, label: str) -> ReferenceSplit:
    """Run `function` on a deep copy of the captured graph, as AOTAutograd would call it.

    Raises StrategyError with what the function raised, or where it returns no pair of modules.
    """
    gm = private.copy_joint(live.gm)
    with private.compiling(live.gm), private.scratch_folder(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(
                gm,
                live.joint_inputs,
                num_fwd_outputs=live.num_fwd_outputs,
                static_lifetime_input_indices=list(live.static_indices),
            )
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            raise StrategyError(
                f"{label} failed on {live.graph.name}",
                why=f"{type(error).__name__}: {first}",
                fix="--debug shows where; --strategy mincut plans the same graph",
            ) from error
    modules = result if isinstance(result, tuple) else ()
    if len(modules) != 2 or not all(isinstance(each, fx.GraphModule) for each in modules):
        raise StrategyError(
            f"{label} returned no pair of graph modules",
            why=f"it returned {type(result).__name__}",
            fix="return (forward_module, backward_module), as a partition_fn of AOTAutograd does",
        )
    told = tuple(dict.fromkeys(str(each.message).splitlines()[0] for each in caught if each.category is UserWarning))
    return ReferenceSplit(*modules, frozenset(node.name for node in gm.graph.nodes), told)


def read_decision(graph: JointGraph, split: ReferenceSplit, reason: Reason, label: str) -> Decision:
    """The decision behind the modules that a partition function returned.

    What is saved is what the backward module is handed; names are those of the joint graph, which extraction keeps.
    Raises StrategyError where the backward is handed something that the joint graph does not have.
    """
    replaced, removed = _cleanup(graph, split.remaining, label)
    names = [node.name for node in split.backward.graph.find_nodes(op="placeholder")]
    saved = [name for name in names if _is_saved(graph, name, label)]
    decision = Decision(
        saved=tuple((name, reason) for name in sorted(saved, key=graph.index.__getitem__)),
        replaced=replaced,
        removed=removed,
        notes=(*split.warnings, *_replays(names)),
    )
    return _with_order(graph, decision, split, label)


def _cleanup(graph: JointGraph, remaining: frozenset[str], label: str) -> tuple[dict[str, str], frozenset[str]]:
    """What the function removed from the joint graph before it decided: nothing, or what our passes remove."""
    if all(node.name in remaining for node in graph.nodes):
        return {}, frozenset()
    cleaned, removed = eliminate_dead(graph)
    merged, replaced = eliminate_common(cleaned)
    for nodes, found in ((merged.nodes, replaced), (cleaned.nodes, {})):
        if {node.name for node in nodes} == remaining:
            return found, removed
    odd = sorted(remaining.symmetric_difference(node.name for node in merged.nodes))
    raise StrategyError(
        f"{label} changed the joint graph before it split it",
        why=f"dead-code removal and common-subexpression elimination do not explain {', '.join(odd[:5])}",
        fix="report it with the model; --strategy mincut does not depend on this",
    )


def _is_saved(graph: JointGraph, name: str, label: str) -> bool:
    if name.startswith(_STATE_NAMES):
        return False
    if name not in graph.index:
        raise StrategyError(
            f"{label} hands its backward {name}, which the joint graph does not have",
            why="it adds nodes of its own (offloading, quantization); such a split cannot be shown as a partition",
            fix="turn that option of torch off, or choose another strategy",
        )
    return graph[name].kind not in (NodeKind.TANGENT, NodeKind.BACKWARD_SEED)


def _replays(names: list[str]) -> tuple[str, ...]:
    count = sum(name.startswith(_STATE_NAMES) for name in names)
    ops = "1 random op is" if count == 1 else f"{count} random ops are"
    return (f"{ops} replayed in the backward from a saved random state (not counted)",) if count else ()


def _with_order(graph: JointGraph, decision: Decision, split: ReferenceSplit, label: str) -> Decision:
    """The decision with the flags under which our cut runs in the order of the returned backward."""
    order = [node.name for node in split.backward.graph.nodes if node.op == "call_function"]
    for keep_order, drop in ((False, False), (True, True), (False, True), (True, False)):
        candidate = replace(decision, keep_order=keep_order, drop_dead_collectives=drop)
        if _same_order(cut(graph, candidate).backward, order):
            return candidate
    note = f"{label} runs the backward in an order of its own; the predicted peak is for PyTorch's usual one"
    return replace(decision, notes=(*decision.notes, note))


def _same_order(half: Half, order: list[str]) -> bool:
    ours = [node.name for node in half.nodes if node.kind is NodeKind.OP]
    if len(ours) != len(order):
        return False
    # A replayed random op stands in the module under a new name.
    return all(left == right or right.startswith("run_with_rng_state") for left, right in zip(ours, order, strict=True))
