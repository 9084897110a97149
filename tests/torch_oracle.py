"""PyTorch's own way from a saved set to two modules, for tests that hold ours equal to it."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.capture import torch_private_split as private
from aotcli.ir.joint import PRIMAL_KINDS, Tag
from aotcli.ir.partition import Partition


def extract(live: Any, partition: Partition) -> tuple[Any, Any]:
    """The modules that PyTorch's passes make of the captured graph for the saved set of `partition`.

    Common subexpressions are merged by `fx_graph_cse`, which must leave the nodes that ours leaves.
    """
    from torch._functorch import config, partitioners
    from torch._functorch.compile_utils import fx_graph_cse, raise_getitems

    with private.compiling(live.gm):
        joint = private.copy_joint(live.gm)
        if partition.replaced:
            joint.graph.eliminate_dead_code()
            joint.graph = fx_graph_cse(joint.graph)
            left = {node.name for node in joint.graph.nodes}
            gone = {node.name for node in live.gm.graph.nodes} - left
            assert partition.replaced.keys() <= gone
            assert set(partition.replaced.values()) <= left
        nodes = {node.name: node for node in joint.graph.nodes}
        saved = [nodes[value.name] for value in partition.saved]
        saved += [nodes[name] for name in _backward_states(live, partition)]
        is_sym, is_opaque = partitioners.is_sym_node, partitioners.is_opaque_node
        forward, backward = partitioners._extract_fwd_bwd_modules(
            joint,
            [node for node in saved if not is_sym(node) and not is_opaque(node)],
            saved_sym_nodes=[node for node in saved if is_sym(node)],
            saved_opaque_nodes=[node for node in saved if is_opaque(node)],
            num_fwd_outputs=live.num_fwd_outputs,
        )
        if replays(live, partition):
            _tag(joint, {name for name in partition.recomputed if Tag.RANDOM in live.graph[name].tags})
            symints = sum(is_sym(node) for node in saved)
            with config.patch(graphsafe_rng_functionalization=False):
                forward, backward = partitioners.functionalize_rng_ops(joint, forward, backward, symints)
        if partition.drop_dead_collectives:
            for module in (forward, backward):
                module.graph.eliminate_dead_code(is_impure_node=partitioners.is_not_collective)
        if not partition.keep_order:
            backward = partitioners.reordering_to_mimic_autograd_engine(backward)
        return raise_getitems(forward), raise_getitems(backward)


def _tag(joint: Any, names: set[str]) -> None:
    """Tag these random ops, and no others, as recomputed."""
    from torch.utils.checkpoint import CheckpointPolicy

    for node in joint.graph.nodes:
        node.meta.pop("recompute", None)
        if node.name in names:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def _backward_states(live: Any, partition: Partition) -> list[str]:
    saved = {value.name for value in partition.saved}
    inputs = cut(live.graph, decision_of(partition)).backward.inputs
    return [name for name in inputs if live.graph[name].kind in PRIMAL_KINDS and name not in saved]


def replays(live: Any, partition: Partition) -> bool:
    """Whether random ops run in both halves, so that the modules hold more than the cut."""
    return any(Tag.RANDOM in live.graph[name].tags for name in partition.recomputed)
