"""Private torch for partitioning: copying joint graphs, running PyTorch's partition functions, extracting halves.

A continuation of torch_private.py; what is said there holds here. Signatures differ between the supported versions
(2.11 has no opaque nodes): the functions here take the newest form and leave out what the installed torch lacks.
"""

from __future__ import annotations

import contextlib
import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

# --- context ------------------------------------------------------------------------------------------------------


def fake_mode_of(gm: fx.GraphModule) -> Any:
    """The fake mode in which a graph was traced, found on its placeholders; None where they hold no fake tensor."""
    from torch._subclasses.fake_tensor import FakeTensor

    for node in gm.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, FakeTensor):
            return value.fake_mode
    return None


@contextlib.contextmanager
def compiling(gm: fx.GraphModule) -> Iterator[None]:
    """What partitioning finds around itself inside torch.compile, for graphs that are partitioned after capture.

    Without a tracing context dead-code removal keeps random ops that nothing reads, and random states have no fake
    mode. Modules are made lazily: code that the next pass makes obsolete is never generated.
    """
    from torch._guards import TracingContext, tracing
    from torch.fx._lazy_graph_module import _use_lazy_graph_module

    with contextlib.ExitStack() as stack:
        if TracingContext.try_get() is None:
            stack.enter_context(tracing(TracingContext(fake_mode_of(gm))))
        stack.enter_context(_use_lazy_graph_module(True))
        yield


# --- copies -------------------------------------------------------------------------------------------------------


def copy_joint(gm: fx.GraphModule, stands_for: Mapping[str, str] | None = None) -> fx.GraphModule:
    """A copy of a joint graph that may be changed, nested graphs and metadata included; tensors are shared.

    Nodes that are keys of `stands_for` are left out, and what reads them reads the node that stands for them.
    """
    merged = stands_for or {}
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    by_name: dict[str, fx.Node] = {}
    for node in gm.graph.nodes:
        if node.name in merged:
            copies[node] = by_name[merged[node.name]]
        else:
            copies[node] = by_name[node.name] = graph.node_copy(node, copies.__getitem__)
    copied = make_module(gm, graph)
    copied.meta = dict(gm.meta)
    for name, child in list(copied.named_children()):
        if isinstance(child, fx.GraphModule):
            copied.add_module(name, copy_joint(child))
    return copied


def make_module(root: torch.nn.Module, graph: fx.Graph) -> fx.GraphModule:
    """A module for `graph` with the attributes that it reads from `root`; lazy inside `compiling`."""
    from torch.fx._lazy_graph_module import _make_graph_module

    return _make_graph_module(root, graph)


# --- PyTorch's own partition functions ----------------------------------------------------------------------------

PartitionFn = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]


def default_partition_function() -> PartitionFn:
    from torch._functorch.partitioners import default_partition

    return default_partition


def min_cut_partition_function(budget: float) -> PartitionFn:
    """`min_cut_rematerialization_partition` under an activation memory budget between 0 and 1."""
    from torch._functorch import config
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    def partition(gm: fx.GraphModule, joint_inputs: Any, **rest: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        with config.patch(activation_memory_budget=budget):
            return min_cut_rematerialization_partition(gm, joint_inputs, **rest)

    return partition


@contextlib.contextmanager
def scratch_folder() -> Iterator[None]:
    """Run in an empty folder: a failing min cut writes its graph into the current one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


# --- extraction ---------------------------------------------------------------------------------------------------


def extract_halves(
    gm: fx.GraphModule,
    tensors: Sequence[fx.Node],
    opaque: Sequence[fx.Node],
    symints: Sequence[fx.Node],
    *,
    num_fwd_outputs: int,
    static_nodes: Sequence[fx.Node],
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward modules by the calling convention of the installed torch's runtime."""
    from torch._functorch.partitioners import _extract_fwd_bwd_modules
    from torch.utils._ordered_set import OrderedSet

    known = inspect.signature(_extract_fwd_bwd_modules).parameters
    values = list(tensors)
    options: dict[str, Any] = {"num_fwd_outputs": num_fwd_outputs}
    if "saved_opaque_nodes" in known:
        options["saved_opaque_nodes"] = list(opaque)
    else:
        values += opaque
    if "static_lifetime_input_nodes" in known:
        options["static_lifetime_input_nodes"] = OrderedSet(static_nodes)
    return _extract_fwd_bwd_modules(gm, values, saved_sym_nodes=list(symints), **options)


# --- random state -------------------------------------------------------------------------------------------------


def tag_replayed(gm: fx.GraphModule, names: frozenset[str]) -> None:
    """Tag the random ops of a copied joint graph whose state is to be saved and set again, and no others."""
    from torch.utils.checkpoint import CheckpointPolicy

    for node in gm.graph.nodes:
        if node.name in names:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        elif "recompute" in node.meta and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            del node.meta["recompute"]


def replay_random_ops(
    gm: fx.GraphModule, forward: fx.GraphModule, backward: fx.GraphModule, num_symints: int
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Make the backward draw what the forward drew, for random nodes of `gm` tagged MUST_RECOMPUTE.

    The state before each op is saved and set again (run_and_save_rng_state, run_with_rng_state), which keeps eager's
    numbers; graph-safe states would not.
    """
    from torch._functorch import config
    from torch._functorch.partitioners import functionalize_rng_ops
    from torch._prims.rng_prims import run_and_save_rng_state

    with config.patch(graphsafe_rng_functionalization=False):
        forward, backward = functionalize_rng_ops(gm, forward, backward, num_symints)
    states = [node for node in backward.graph.find_nodes(op="placeholder") if node.name.startswith("rng_state_output")]
    for node in forward.graph.find_nodes(op="call_function", target=run_and_save_rng_state):
        states += [user for user in node.users if user.args == (node, 0)]
    for node in states:
        node.meta["val"] = _state_of_fixed_size(node.meta["val"])
    return forward, backward


def _state_of_fixed_size(value: torch.Tensor) -> torch.Tensor:
    """A state's metadata without the symbol that a dynamic fake mode gives to its length: nothing binds that."""
    if not any(isinstance(dim, torch.SymInt) for dim in value.shape):
        return value
    length = torch.get_rng_state().numel() if value.device.type == "cpu" else torch.cuda.get_rng_state().numel()
    with value.fake_mode:  # type: ignore[attr-defined]
        return torch.empty(length, dtype=torch.uint8)


def thread_random_states(gm: fx.GraphModule, *, is_backward: bool) -> fx.GraphModule:
    """Pass graph-safe random states of nested graphs through the outer one."""
    from torch._functorch.partitioners import thread_graphsafe_rng_from_hops

    return thread_graphsafe_rng_from_hops(gm, is_backward=is_backward)
