"""The one place where aotcli touches private torch: mend this file when PyTorch changes.

Every name is imported where it is used; nothing else in aotcli imports torch._functorch, torch._inductor,
torch._dynamo, torch._subclasses or torch.fx.experimental. A test holds that.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from aotcli.capture import step

OpOverload = torch._ops.OpOverload
OpOverloadPacket = torch._ops.OpOverloadPacket
HigherOrderOperator = torch._ops.HigherOrderOperator

# --- op facts (read by snapshot.py) ---------------------------------------------------------------------------


def partitioner_op_sets() -> dict[str, frozenset[Any]]:
    """The partitioner's op sets of the installed torch: recomputable, fusible, compute_intensive, view, random_op."""
    from torch._functorch.partitioners import get_default_op_list

    ops = get_default_op_list()
    return {
        "recomputable": frozenset(ops.recomputable_ops),
        "fusible": frozenset(ops.fusible_ops),
        "compute_intensive": frozenset(ops.compute_intensive_ops),
        "view": frozenset(ops.view_ops),
        "random_op": frozenset(ops.random_ops),
    }


def ops_never_merged() -> frozenset[Any]:
    """Op packets that fx_graph_cse leaves alone: its random ops, and aten.empty."""
    from torch._functorch.compile_utils import rand_ops

    return frozenset([*rand_ops, torch.ops.aten.empty])


def is_builtin_op(target: torch._ops.OpOverload) -> bool:
    from torch._library.utils import is_builtin

    return is_builtin(target)


def is_with_effects(node: fx.Node) -> bool:
    from torch._higher_order_ops.effects import with_effects

    return node.target is with_effects


def mutable_argument_names(node: fx.Node) -> tuple[str, ...]:
    """Keyword arguments that a functionalized mutable op clones before mutating them; () for any other node."""
    if node.target is torch.ops.higher_order.auto_functionalized:
        from torch._higher_order_ops.auto_functionalize import get_mutable_args

        names, _ = get_mutable_args(node.args[0])  # type: ignore[arg-type]
        return tuple(names)
    if node.target is torch.ops.higher_order.triton_kernel_wrapper_functional:
        return tuple(node.kwargs["tensors_to_clone"])  # type: ignore[arg-type]
    return ()


def is_opaque_value(node: fx.Node) -> bool:
    try:
        from torch._functorch._aot_autograd.graph_compile import is_opaque_node
    except ImportError:  # torch 2.11 has no opaque nodes
        return False
    return bool(is_opaque_node(node))


def is_backward_state(value: object) -> bool:
    from torch.fx.experimental._backward_state import BackwardState

    return isinstance(value, BackwardState)


def is_script_object(value: object) -> bool:
    from torch._library.fake_class_registry import FakeScriptObject

    return isinstance(value, (torch.ScriptObject, FakeScriptObject))


def memory_budget_of(node: fx.Node) -> float | None:
    """The budget that `torch.autograd.graph.region_activation_memory_budget` put on a node, or the older mark."""
    legacy = node.meta.get("memory_budget")
    custom = node.meta.get("custom") or {}
    try:
        from torch._functorch.partitioners import _get_memory_budget_annotation
    except ImportError:
        return legacy if isinstance(legacy, float) else None
    found = _get_memory_budget_annotation(node) if custom else None
    return found if found is not None else (legacy if isinstance(legacy, float) else None)


# --- symbols --------------------------------------------------------------------------------------------------

UNBACKED_HINT = 4096
"""The size that PyTorch's partitioner assumes for a dimension that depends on data."""


def size_hint(value: Any) -> int:
    """A symbolic or plain integer as a number, without adding guards."""
    if not isinstance(value, torch.SymInt):
        return int(value)
    try:
        from torch.fx.experimental.symbolic_shapes import optimization_hint

        return int(optimization_hint(value, fallback=UNBACKED_HINT))
    except ImportError:  # before optimization_hint
        node = value.node
        return int(node.shape_env.size_hint(node.expr, allow_none=True) or UNBACKED_HINT)


def bound_symbol(node: fx.Node) -> str | None:
    from torch.fx.experimental.symbolic_shapes import is_symbol_binding_fx_node

    symbol = is_symbol_binding_fx_node(node)
    return None if symbol is None else str(symbol)


def symbol_facts(shape_env: Any) -> list[tuple[str, str, Any, Any, Any]]:
    """Name, source, hint, lower and upper bound of every symbol of a shape environment."""
    values = getattr(shape_env, "backed_var_to_val", None)
    if values is None:
        values = shape_env.var_to_val
    facts = []
    for symbol, bounds in shape_env.var_to_range.items():
        sources = shape_env.var_to_sources.get(symbol) or []
        source = source_name(sources[0]) if sources else ""
        facts.append((str(symbol), source, values.get(symbol), bounds.lower, bounds.upper))
    return facts


def source_name(source: Any) -> str:
    """A Dynamo source as text (a property in newer torch, a method in older)."""
    name = source.name
    return str(name() if callable(name) else name)


# --- placeholders ---------------------------------------------------------------------------------------------


def placeholder_role(node: fx.Node) -> tuple[str, int | None]:
    """A placeholder's role (primal, tangent, seed or backward_seed) and its index among the region's flat inputs."""
    name = str(node.target)
    if "tangents" in name:
        return "tangent", None
    if "fwd_seed" in name or "fwd_base_offset" in name:
        return "seed", None
    if "bwd_seed" in name or "bwd_base_offset" in name:
        return "backward_seed", None
    desc = node.meta.get("desc")
    while desc is not None:
        index = getattr(desc, "idx", None)
        if isinstance(index, int) and type(desc).__name__ == "PlainAOTInput":
            return "primal", index
        desc = getattr(desc, "base", None)
    return "primal", None


def graph_inputs(gm: fx.GraphModule) -> list[tuple[str, Any]]:
    """For each placeholder of a Dynamo graph: the source it came from, and the very object given (or None)."""
    found = []
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            continue
        argument = node.meta.get("grapharg")
        if argument is None:
            found.append((str(node.target), None))
            continue
        try:
            example = argument.example
        except (AssertionError, ReferenceError):
            example = None
        found.append((source_name(argument.source), example))
    return found


def compiling_frame() -> tuple[str, Any]:
    """The Python frame that Dynamo compiles now: its file, and its local `self` (None where it has none)."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    translator = InstructionTranslator.current_tx()
    return str(translator.f_code.co_filename), translator.f_locals.get("self")


# --- capture --------------------------------------------------------------------------------------------------


def reset_dynamo() -> None:
    """Forget all that was compiled, and modules that Dynamo remembers by name: a model file may have run again."""
    import torch._dynamo
    from torch._dynamo import symbolic_convert

    torch._dynamo.reset()
    remembered = getattr(symbolic_convert, "_import_module", None)
    if remembered is not None and hasattr(remembered, "cache_clear"):
        remembered.cache_clear()
    # Dynamo leaves a name for each such module in the globals of the frame it compiles first, which is ours.
    for name in [name for name in vars(step) if name.startswith("__import_")]:
        delattr(step, name)


@contextlib.contextmanager
def dynamo_limits() -> Iterator[None]:
    """Settings under which a capture sees every region and never falls back silently.

    Where garbage collection is switched off, Dynamo's own after each compilation is, too.
    """
    import torch._dynamo

    with torch._dynamo.config.patch(
        recompile_limit=64,
        accumulated_recompile_limit=1024,
        suppress_errors=False,
        run_gc_after_compile=gc.isenabled() and torch._dynamo.config.run_gc_after_compile,
    ):
        yield


PartitionFn = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]
CompilerFn = Callable[[fx.GraphModule, Sequence[Any]], Any]


def aten_backend(partition_fn: PartitionFn, compiler: CompilerFn, inference: CompilerFn) -> Callable[..., Any]:
    """A Dynamo backend that stops after AOTAutograd, at the level that `aot_eager` sees."""
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=inference,
        partition_fn=partition_fn,
        keep_inference_input_mutations=True,
    )


def inductor_backend(partition_fn: PartitionFn, compiler: CompilerFn, inference: CompilerFn) -> Callable[..., Any]:
    """A Dynamo backend that runs Inductor up to its partitioner: its decompositions and joint passes, no code."""
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Recorder(CustomPartitionerFn):
        def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> Any:
            kwargs.pop("compiler", None)
            return partition_fn(gm, joint_inputs, **kwargs)

        def uuid(self) -> None:
            return None

    def inner(gm: fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Any:
        return (inference if kwargs.get("is_inference") else compiler)(gm, inputs)

    def backend(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        with config.patch(custom_partitioner_fn=Recorder(), force_disable_caches=True):
            return compile_fx(gm, inputs, inner_compile=inner)

    return backend


def boxed(function: Callable[..., Any]) -> Any:
    """Mark a callable that takes one list of arguments as boxed, as AOTAutograd's runtime calls it."""
    from functorch.compile import make_boxed_func

    return make_boxed_func(function)


def default_partition(gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    from torch._functorch.partitioners import default_partition as partition

    return partition(gm, joint_inputs, **kwargs)


def copy_module(gm: fx.GraphModule) -> fx.GraphModule:
    """A copy whose graph and node metadata may be changed; submodules and tensors are shared."""
    graph = fx.Graph()
    seen: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        seen[node] = graph.node_copy(node, seen.__getitem__)
    copied = fx.GraphModule(gm, graph)
    copied.meta = dict(gm.meta)
    return copied


def is_nested_region(joint_inputs: Any) -> bool:
    """Whether AOTAutograd asks to partition the body of a higher-order op: it passes no inputs then."""
    return isinstance(joint_inputs, list) and not joint_inputs


def mutated_primals(gm: fx.GraphModule) -> list[fx.Node]:
    """Primal placeholders that a graph changes: by a copy_ at its end, or by handing back the new value."""
    changed: dict[fx.Node, None] = {}
    primals = [n for n in gm.graph.find_nodes(op="placeholder") if placeholder_role(n)[0] == "primal"]
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        if node.args[0] in primals:
            changed[node.args[0]] = None
    by_index = {placeholder_role(n)[1]: n for n in primals}
    for description in _output_descriptions(gm, 0):
        if type(description).__name__ == "InputMutationAOTOutput":
            node = by_index.get(getattr(description.mutated_input, "idx", None))
            if node is not None:
                changed[node] = None
    return sorted(changed, key=primals.index)


def _flat_outputs(gm: fx.GraphModule) -> list[Any]:
    return list(pytree.arg_tree_leaves(*(node.args for node in gm.graph.find_nodes(op="output"))))


def stub_halves(gm: fx.GraphModule, num_forward_outputs: int) -> tuple[fx.GraphModule, fx.GraphModule]:
    """A forward and a backward with the joint graph's signature and nothing inside.

    A capture on fake tensors never computes: AOTAutograd needs only the metadata of placeholders and outputs, so
    no partitioner has to run to see the next region.
    """
    outputs = _flat_outputs(gm)
    forward, backward = fx.Graph(), fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.find_nodes(op="placeholder"):
        graph = backward if placeholder_role(node)[0] in ("tangent", "backward_seed") else forward
        known[node] = graph.placeholder(node.name)
        known[node].meta = node.meta
    # A gradient that is None would say that an input never gets one: autograd would be cut off from it.
    made: dict[fx.Node, fx.Node] = {}
    for graph, nodes, values in (
        (forward, outputs[:num_forward_outputs], known),
        (backward, outputs[num_forward_outputs:], made),
    ):
        for node in nodes:
            if isinstance(node, fx.Node) and node not in values:
                values[node] = graph.call_function(stub_value, (len(values),))
                values[node].meta = node.meta
    out = forward.output(tuple(known.get(n, n) if isinstance(n, fx.Node) else n for n in outputs[:num_forward_outputs]))
    descriptions = _output_descriptions(gm, len(outputs))
    out.meta["desc"] = descriptions[:num_forward_outputs]
    end = backward.output(tuple(made.get(n) if isinstance(n, fx.Node) else None for n in outputs[num_forward_outputs:]))
    end.meta["desc"] = descriptions[num_forward_outputs:]
    return fx.GraphModule(torch.nn.Module(), forward), fx.GraphModule(torch.nn.Module(), backward)


def stub_value(number: int) -> Any:
    """Stands for a computed output in a stub; a capture on fake tensors reads its metadata and never calls it."""
    raise AssertionError(f"stub value {number} was computed: a stub is never run")


def _output_descriptions(gm: fx.GraphModule, count: int) -> list[Any]:
    output = next(iter(gm.graph.find_nodes(op="output")))
    found = output.meta.get("desc")
    return [None] * count if found is None else list(pytree.arg_tree_leaves(found))


def capture_failures() -> tuple[type[BaseException], ...]:
    """Exceptions with which Dynamo and AOTAutograd report that a model cannot be captured."""
    from torch._dynamo.exc import TorchDynamoException
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
    )
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    return (
        TorchDynamoException,
        DataDependentOutputException,
        DynamicOutputShapeException,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
        GuardOnDataDependentSymNode,
    )
