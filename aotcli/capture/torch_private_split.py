"""Private torch for partitioning: copies of joint graphs, PyTorch's partition functions, what the runtime expects.

A continuation of torch_private.py; what is said there holds here. Names that not all supported versions have are
looked up where they are used, with what the older ones do instead.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
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


def copy_joint(gm: fx.GraphModule) -> fx.GraphModule:
    """A copy of a joint graph that may be changed, nested graphs and metadata included; tensors are shared."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
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


def memory_budget() -> float:
    """The activation memory budget that is set in this process: 1 unless the user's code changed it."""
    from torch._functorch import config

    return float(config.activation_memory_budget)


@contextlib.contextmanager
def scratch_folder() -> Iterator[None]:
    """Run in an empty folder: a failing min cut writes its graph into the current one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


# --- the runtime's calling convention -----------------------------------------------------------------------------


def output_descriptions(gm: fx.GraphModule) -> list[Any]:
    """What AOTAutograd says of each output of a joint graph: None where it says nothing."""
    from torch.utils._pytree import arg_tree_leaves

    (output,) = gm.graph.find_nodes(op="output")
    described = output.meta.get("desc")
    outputs = arg_tree_leaves(*output.args)
    return [None] * len(outputs) if described is None else list(arg_tree_leaves(described))


def saved_descriptions(count: int, version_checked: int, tensors: int) -> list[Any]:
    """Descriptions of `count` saved values: the first `tensors` are tensors, of which the first `version_checked` are
    saved under a version check and the rest without (torch before 2.12 knows no such tensors)."""
    from torch._functorch._aot_autograd import descriptors

    unchecked = getattr(descriptors, "SavedForBackwardsNoVcCheckAOTOutput", descriptors.SavedForBackwardsAOTOutput)
    return [
        unchecked(i) if version_checked <= i < tensors else descriptors.SavedForBackwardsAOTOutput(i)
        for i in range(count)
    ]


# --- random state -------------------------------------------------------------------------------------------------


def tagged_copy(gm: fx.GraphModule, names: frozenset[str]) -> fx.GraphModule:
    """A copy of a joint graph in which these random ops, and no others, are tagged as recomputed."""
    from torch.utils.checkpoint import CheckpointPolicy

    copied = copy_joint(gm)
    for node in copied.graph.nodes:
        if node.name in names:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        elif "recompute" in node.meta and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            del node.meta["recompute"]
    return copied


def replay_random_ops(
    gm: fx.GraphModule, forward: fx.GraphModule, backward: fx.GraphModule, num_symints: int, *, graphsafe: bool = False
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Make the backward draw what the forward drew, for random nodes of `gm` tagged MUST_RECOMPUTE.

    The state before each op is saved and set again (run_and_save_rng_state, run_with_rng_state), which keeps eager's
    numbers; graph-safe states, for devices that have them, do not.
    """
    from torch._functorch import config
    from torch._functorch.partitioners import functionalize_rng_ops
    from torch._prims.rng_prims import run_and_save_rng_state

    with config.patch(graphsafe_rng_functionalization=graphsafe):
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


# --- running what was planned -----------------------------------------------------------------------------------


def custom_partitioner_base() -> type:
    """The class that Inductor wants a custom partitioner to have."""
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    return CustomPartitionerFn


def compile_with_inductor(gm: fx.GraphModule, inputs: Sequence[Any], partitioner: Any, inner: Any = None) -> Any:
    """Inductor, with another partitioner; with `inner`, another compiler of the halves instead of code generation."""
    from torch._inductor.compile_fx import compile_fx

    given = {} if inner is None else {"inner_compile": inner}
    return compile_fx(gm, inputs, config_patches={"custom_partitioner_fn": partitioner}, **given)


def compile_with_aot_eager(gm: fx.GraphModule, inputs: Sequence[Any], partition_fn: PartitionFn) -> Any:
    """What the backend aot_eager does, with another partitioner.

    The generated code takes its arguments in one list that it empties, so that each is freed at its last use.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop

    backend = aot_autograd(
        fw_compiler=boxed_nop,
        bw_compiler=boxed_nop,
        partition_fn=partition_fn,
        keep_inference_input_mutations=True,
    )
    return backend(gm, inputs)


def is_compiled_node(node: Any) -> bool:
    """Whether an autograd node is the backward of a region that AOTAutograd compiled."""
    return type(node).__name__ == "CompiledFunctionBackward"


def current_autograd_node() -> Any:
    """The node whose backward, or whose hook, runs now."""
    return torch._C._current_autograd_node()
