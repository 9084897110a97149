"""What a capture hands on: the regions, and everything that says what was traced."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from aotcli.ir.joint import JointGraph


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """How to capture. Each field is an option of the command line.

    `inputs` are `--input` specs, `overrides` the `--set K=V` pairs. `tensors` is auto, fake or real. `train` None
    leaves the model in the mode that its file gave it (training, for the built-in loaders). `level` is inductor or
    aten. `dynamic` marks every input dimension above 1 dynamic unless the file has `dynamic_shapes`. `autocast` is
    a dtype name or None; `dtype` converts parameters and floating inputs. `with_torch` adds PyTorch's own decision.
    """

    level: str = "inductor"
    device: str = "cpu"
    dtype: str | None = None
    autocast: str | None = None
    dynamic: bool = False
    tensors: str = "auto"
    seed: int = 0
    train: bool | None = None
    loss: bool = True
    inputs: tuple[str, ...] = ()
    overrides: tuple[tuple[str, str], ...] = ()
    with_source: bool = False
    anonymize: bool = False
    with_torch: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """The software and device that captured."""

    torch: str
    device: str
    device_name: str | None = None
    cuda: str | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What was captured. `inputs` are texts such as ``tokens i64[8,1024]``; counts are numbers, sizes are bytes."""

    name: str
    spec: str
    parameters: int = 0
    parameter_bytes: int = 0
    buffer_bytes: int = 0
    input_bytes: int = 0
    dtypes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Why capture was cut, and where (``file:line``)."""

    reason: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class EagerSaved:
    """What eager autograd keeps for the same step, seen by saved-tensor hooks; bytes by unique storage.

    `saved_bytes` leaves out parameters, buffers, inputs and the step's outputs; `saved_input_bytes` is those of
    parameters, buffers and inputs. `tensors` counts the storages of `saved_bytes`.
    """

    saved_bytes: int
    saved_input_bytes: int
    tensors: int


@dataclass(frozen=True, slots=True)
class TorchRegion:
    """What PyTorch's min-cut partitioner decided about one region, under activation memory budget `budget`.

    `saved` are node names in graph order; `replaced` pairs of nodes, the first computed as the second; the rest is what
    `Decision` (aotcli/ir/partition.py) has. `failure` says why there is no decision, and is empty where there is one.
    """

    saved_bytes: int = 0
    saved: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    keep_order: bool = False
    drop_dead_collectives: bool = False
    budget: float = 1.0
    notes: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Trace:
    """One training step (or forward) of one workload, captured.

    `loss` says whether the loss is inside; `train` the mode; `tensors` is "fake" or "real" (what was used). `notes`
    are sentences for the reader (fallbacks, fake/real differences). `mutations` lists parameters, buffers and inputs
    that the step changes; `side_effects`, `hooks` and `guards` are texts from Dynamo. `eager` is None where eager
    could not be measured; the note says why. `torch_decision` is PyTorch's own, region by region, where the capture was
    asked for it.
    """

    model: ModelInfo
    environment: Environment
    settings: CaptureSettings
    regions: tuple[JointGraph, ...]
    loss: bool = False
    train: bool = True
    tensors: str = "fake"
    breaks: tuple[GraphBreak, ...] = ()
    mutations: tuple[str, ...] = ()
    side_effects: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    eager: EagerSaved | None = None
    notes: tuple[str, ...] = ()
    torch_decision: tuple[TorchRegion, ...] = ()

    def __repr__(self) -> str:
        nodes = sum(len(graph.nodes) for graph in self.regions)
        regions = f"{len(self.regions)} region{'' if len(self.regions) == 1 else 's'}"
        return f"<Trace of {self.model.name}: {regions}, {nodes} nodes, level {self.settings.level}>"

    def _repr_html_(self) -> str:
        """A small table for a notebook."""
        device = self.environment.device_name or self.environment.device
        settings = f"level {self.settings.level}, {self.tensors} tensors, {device}, torch {self.environment.torch}"
        rows = (
            ("step", f"{'model and loss' if self.loss else 'model'}, {'train' if self.train else 'eval'}"),
            ("inputs", ", ".join(self.model.inputs)),
            ("regions", ", ".join(f"{graph.name}: {len(graph.nodes):,} nodes" for graph in self.regions)),
            ("graph breaks", f"{len(self.breaks)}"),
            ("captured", settings),
        )
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>{escape(self.model.name)}</caption>{cells}</table>"
