"""Checkpoint policies as the partitioner ends up with them: the user's tags, and the saves that the graph forces.

Five things turn a node into MUST_SAVE whatever it was tagged (torch's `cleanup_recompute_tags` and `force_save_*`,
2.13): the last value of a checkpointed block that the next block reads (else both blocks would be rerun as one), the
result of a block that carries a backward hook, collectives, results of ops with effects, and what is copied into an
input that the backward writes as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref, Tag

CHECKPOINT_POLICY = "checkpoint policy"
BLOCK_BOUNDARY = "boundary of two checkpointed blocks"
BLOCK_INPUT = "input of a checkpointed block"
BACKWARD_HOOK = "backward hook on a checkpointed block"
COLLECTIVE = "collective"
EFFECT = "result of an op with effects"
WRITTEN_TWICE = "copied into an input that the backward writes too"


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies by position, and for each node that must be saved, why."""

    must_save: list[bool]
    must_recompute: list[bool]
    cause: dict[int, str]

    def force(self, position: int, cause: str) -> None:
        self.must_save[position] = True
        self.must_recompute[position] = False
        self.cause[position] = cause


def checkpoint_policies(graph: JointGraph, *, save_block_inputs: bool = False) -> Policies:
    """The policies in force. `save_block_inputs` also saves what a checkpointed block reads from outside, as torch's
    default partitioner does and its min cut does not."""
    policies = Policies(
        must_save=[node.checkpoint == "MUST_SAVE" for node in graph.nodes],
        must_recompute=[node.must_recompute for node in graph.nodes],
        cause={i: CHECKPOINT_POLICY for i, node in enumerate(graph.nodes) if node.checkpoint == "MUST_SAVE"},
    )
    if any(policies.must_recompute):
        _separate_blocks(graph, policies, save_block_inputs)
    _save_collectives(graph, policies)
    _save_effects(graph, policies)
    _save_sources_written_twice(graph, policies)
    return policies


def _separate_blocks(graph: JointGraph, policies: Policies, save_block_inputs: bool) -> None:
    for position, node in enumerate(graph.nodes):
        recomputed_users = [user for user in graph.users_of[position] if policies.must_recompute[user]]
        if policies.must_recompute[position]:
            if any(_later_block(node, graph.nodes[user]) for user in recomputed_users):
                policies.force(position, BLOCK_BOUNDARY)
            if Tag.BACKWARD_HOOK in node.tags and not recomputed_users:
                policies.force(position, BACKWARD_HOOK)
        elif save_block_inputs and recomputed_users and node.ac_graph_id is None and not _part_of_block(graph, node):
            policies.force(position, BLOCK_INPUT)


def _later_block(node: Node, user: Node) -> bool:
    return node.ac_graph_id is not None and user.ac_graph_id is not None and user.ac_graph_id > node.ac_graph_id


def _part_of_block(graph: JointGraph, node: Node) -> bool:
    """Whether an unlabelled getitem takes from a tuple that belongs to a checkpointed block."""
    if node.target != "operator.getitem" or not isinstance(node.args[0], Ref):
        return False
    parent = graph[node.args[0].name]
    return isinstance(parent.value, tuple) and parent.ac_graph_id is not None


def _save_collectives(graph: JointGraph, policies: Policies) -> None:
    for position, node in enumerate(graph.nodes):
        if Tag.COLLECTIVE in node.tags and not policies.must_recompute[position]:
            policies.force(position, COLLECTIVE)


def _save_effects(graph: JointGraph, policies: Policies) -> None:
    for position, node in enumerate(graph.nodes):
        if Tag.WITH_EFFECTS not in node.tags or policies.must_recompute[position]:
            continue
        if node.partitioner_tag == "is_backward":
            continue
        pending = [position]
        for parent in pending:
            for user in graph.users_of[parent]:
                if graph.nodes[user].target == "operator.getitem":
                    pending.append(user)
                    if not isinstance(graph.nodes[user].value, tuple):
                        policies.force(user, EFFECT)


def _save_sources_written_twice(graph: JointGraph, policies: Policies) -> None:
    """AOTAutograd puts the copies into inputs at the end of the graph, so only the tail is looked at."""
    written_in_backward: set[str] = set()
    for node in reversed(graph.nodes):
        if node.kind is NodeKind.OUTPUT:
            continue
        if node.target != "aten.copy_.default":
            return
        target, source = node.args[0], node.args[1]
        if not isinstance(target, Ref) or not isinstance(source, Ref):
            continue
        if node.partitioner_tag == "must_be_in_backward":
            written_in_backward.add(target.name)
        if node.partitioner_tag == "must_be_in_forward" and target.name in written_in_backward:
            policies.force(graph.index[source.name], WRITTEN_TWICE)
