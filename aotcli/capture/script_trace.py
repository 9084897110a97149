"""What a script's recorded regions amount to: the trace of `aotcli.capture.script`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from aotcli.capture.inputs import describe_shape
from aotcli.capture.project import relative_to_root
from aotcli.capture.recorder import Recorder
from aotcli.capture.script_steps import StepWatcher
from aotcli.capture.torch_decision import torch_decisions
from aotcli.ir.joint import JointGraph, NodeKind, Ref
from aotcli.ir.tensor import TensorSpec, tensor_leaves
from aotcli.ir.trace import CaptureSettings, Environment, ModelInfo, Trace


@dataclass(frozen=True)
class Script:
    """A script to run: a file, or with `module` a module, and its arguments."""

    target: str
    module: bool
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.target.rpartition(".")[2] if self.module else Path(self.target).stem


def script_trace(
    script: Script, root: Path, settings: CaptureSettings, recorder: Recorder, watcher: StepWatcher
) -> Trace:
    """The trace of a script that has been run; its device is that of its regions."""
    graphs = tuple(region.graph for region in recorder.regions)
    device = _device(graphs)
    name = torch.cuda.get_device_name() if device == "cuda" else None
    target = script.target if script.module else relative_to_root(Path(script.target), root)
    return Trace(
        model=_model_info(script.name, f"-- python {'-m ' if script.module else ''}{target}", graphs, watcher),
        environment=Environment(torch.__version__, device, name, torch.version.cuda),
        settings=replace(settings, device=device, tensors="real"),
        regions=graphs,
        loss=any(_returns_scalar(graph) for graph in graphs),
        train=any(graph.has_backward for graph in graphs),
        tensors="real",
        breaks=tuple(recorder.breaks),
        mutations=tuple(
            dict.fromkeys(
                f"{graph[each].kind} {graph[each].origin or each}" for graph in graphs for each in graph.mutated
            )
        ),
        notes=("recorded from a script: what eager saves was not measured",),
        torch_decision=torch_decisions(recorder.regions) if settings.with_torch else (),
    )


def _device(graphs: tuple[JointGraph, ...]) -> str:
    """The accelerator that the regions use, else the cpu."""
    leaves = [leaf for graph in graphs for node in graph.placeholders for leaf in tensor_leaves(node.value)]
    return min({leaf.device.partition(":")[0] for leaf in leaves} - {"cpu"}, default="cpu")


def _returns_scalar(graph: JointGraph) -> bool:
    """Whether a region with a backward returns a number first, as a step with the loss inside does."""
    first = next(iter(graph.forward_outputs), None)
    if not graph.has_backward or not isinstance(first, Ref):
        return False
    return [spec.shape for spec in tensor_leaves(graph[first.name].value)] == [()]


def _model_info(name: str, spec: str, graphs: tuple[JointGraph, ...], watcher: StepWatcher) -> ModelInfo:
    """Counts of the compiled modules; where functions were compiled, of the parameters that their regions read."""
    inputs = [node for graph in graphs for node in graph.placeholders if node.kind is NodeKind.INPUT]
    parameters = watcher.parameters() or _parameters_of(graphs)
    return ModelInfo(
        name=name,
        spec=spec,
        parameters=sum(numel for numel, _, _ in parameters),
        parameter_bytes=sum(nbytes for _, nbytes, _ in parameters),
        buffer_bytes=sum(leaf.nbytes for graph in graphs for leaf in _of_kind(graph, NodeKind.BUFFER)),
        input_bytes=sum(leaf.nbytes for node in inputs for leaf in tensor_leaves(node.value)),
        dtypes=tuple(dict.fromkeys(dtype for _, _, dtype in parameters)),
        inputs=tuple(
            dict.fromkeys(
                f"{node.origin or node.name} {describe_shape(leaf.dtype, leaf.sizes)}"
                for node in inputs
                for leaf in tensor_leaves(node.value)
            )
        ),
    )


def _of_kind(graph: JointGraph, kind: NodeKind) -> list[TensorSpec]:
    return [leaf for node in graph.placeholders if node.kind is kind for leaf in tensor_leaves(node.value)]


def _parameters_of(graphs: tuple[JointGraph, ...]) -> list[tuple[int, int, str]]:
    leaves = [leaf for graph in graphs for leaf in _of_kind(graph, NodeKind.PARAM)]
    return [(leaf.nbytes // getattr(torch, leaf.dtype).itemsize, leaf.nbytes, leaf.dtype) for leaf in leaves]
