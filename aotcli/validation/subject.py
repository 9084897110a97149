"""A step that is run and watched: one copy of a workload, and what one forward and backward of it gave.

Every copy starts from the same weights, buffers and inputs, and every step from a seed, so that two copies can be
compared tensor by tensor. Results are moved to the CPU: the device holds no more than the step itself needs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from aotcli.capture.seeding import seed_generators
from aotcli.capture.torch_private import pytree
from aotcli.capture.torch_private_validate import HandedOver, handed_over
from aotcli.capture.workload import BuiltWorkload
from aotcli.errors import WorkloadError
from aotcli.validation.shared import SharedTensors

Tensors = dict[str, Tensor]


@dataclass
class StepRun:
    """One step, its tensors by name.

    `gradients` are of parameters, `input_gradients` of inputs that ask for one; a parameter that got none is left out.
    `state` is what the step may change in place: buffers, parameters and inputs as they were after it. `aliases`
    pairs outputs with the inputs, parameters or buffers whose storage they share. `random_state` is that of the
    generators afterwards; `drew` says whether it moved. `held` is what compiled regions kept for their backward.
    """

    outputs: Tensors = field(default_factory=dict)
    gradients: Tensors = field(default_factory=dict)
    input_gradients: Tensors = field(default_factory=dict)
    state: Tensors = field(default_factory=dict)
    aliases: frozenset[tuple[str, str]] = frozenset()
    random_state: tuple[Tensor, ...] = ()
    drew: bool = False
    differentiable: bool = True
    held: list[HeldRegion] = field(default_factory=list)


@dataclass(frozen=True)
class HeldTensor:
    """A tensor kept for the backward: its layout, and the storage behind it (`storage` is equal for aliases)."""

    shape: tuple[int, ...]
    dtype: str
    storage: int
    storage_nbytes: int


@dataclass(frozen=True)
class HeldRegion:
    """What one run of a compiled region kept for its backward; `compiled_as` is AOTAutograd's number of the region."""

    compiled_as: int
    tensors: tuple[HeldTensor, ...]
    opaque: int
    symints: tuple[int | float, ...]


def outputs_of(step: StepRun) -> Tensors:
    """The outputs of a step."""
    return step.outputs


def gradients_of(step: StepRun) -> Tensors:
    """The gradients of its parameters."""
    return step.gradients


def input_gradients_of(step: StepRun) -> Tensors:
    """The gradients of its inputs."""
    return step.input_gradients


def state_of(step: StepRun) -> Tensors:
    """What it may have changed in place."""
    return step.state


class Original:
    """What copies are made from: a built workload, which never runs itself. `state` is what every copy starts from."""

    def __init__(self, built: BuiltWorkload) -> None:
        self.built = built
        self.shared = SharedTensors.of(built.constants)
        named = {**dict(built.step.named_buffers()), **dict(built.step.named_parameters())}
        inputs = named_inputs(built.input_names, built.args, built.kwargs)
        found = {**_named(named), **dict(_numbered(self.shared.start)), **inputs}
        self.state = {name: tensor.detach().to("cpu") for name, tensor in found.items()}


class Subject:
    """A copy of a workload with its own weights and inputs. `run` is the step as compiled, or the plain step."""

    def __init__(self, original: Original, compiled: Callable[[nn.Module], Any] | None = None) -> None:
        built = original.built
        try:
            self.step, self.args, self.kwargs = copy.deepcopy((built.step, built.args, built.kwargs))
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise WorkloadError(
                "the model cannot be copied, so eager and compiled cannot start from the same state",
                why=f"{type(error).__name__}: {error}",
                fix="let no module hold tensors that are results of other ops",
            ) from error
        self.run: Any = self.step if compiled is None else compiled(self.step)
        self.names = built.input_names
        self.device = _device_of(self.step, self.args, self.kwargs)
        self._shared = original.shared
        self._values = original.shared.values()
        self._initial = original.state

    def to_float64(self) -> Subject:
        """The same in double precision, in place."""
        self.step.double()
        self._shared.to_float64(self._values)
        self.args, self.kwargs = pytree.tree_map(_doubled, (self.args, self.kwargs))
        return self

    def to_channels_last(self) -> Subject:
        """The same with images and the weights of convolutions laid out channels last, in place."""
        for tensor in (*self.step.parameters(), *self.step.buffers()):
            tensor.data = _channels_last(tensor.data)
        self.args, self.kwargs = pytree.tree_map(_channels_last, (self.args, self.kwargs))
        return self

    @property
    def parameters(self) -> Tensors:
        named = dict(self.step.named_parameters())
        return {**_named(named), **{name: tensor for name, tensor in self._constants() if tensor.requires_grad}}

    @property
    def buffers(self) -> Tensors:
        named = dict(self.step.named_buffers())
        return {**_named(named), **{name: tensor for name, tensor in self._constants() if not tensor.requires_grad}}

    def _constants(self) -> list[tuple[str, Tensor]]:
        """What the step reads and does not own, by number, with the values of this copy in it."""
        self._shared.put(self._values)
        return _numbered(self._shared.tensors)

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A fresh copy of the inputs; marks of dynamic dimensions are kept."""
        return copy.deepcopy((self.args, self.kwargs))

    def clear_gradients(self) -> None:
        for parameter in self.parameters.values():
            parameter.grad = None

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
        """The outputs that are tensors, by place."""
        self._shared.put(self._values)
        leaves, _ = pytree.tree_flatten(self.run(*args, **kwargs))
        return {f"output {i}": leaf for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}

    def backward(self, outputs: Tensors, *, retain_graph: bool = False) -> bool:
        """Run the backward from every output that has one, with gradients drawn from a seed where it is no scalar
        loss. False where no output has a gradient."""
        roots = [output for output in outputs.values() if output.requires_grad]
        if not roots:
            return False
        torch.autograd.backward(roots, [_cotangent(root) for root in roots], retain_graph=retain_graph)
        return True

    def plain_step(self, seed: int) -> None:
        """One step whose results are thrown away but for the gradients."""
        args, kwargs = self.inputs()
        seed_generators(seed)
        self.backward(self.forward(args, kwargs))

    def watched_step(self, seed: int) -> StepRun:
        """One step, everything kept."""
        args, kwargs = self.inputs()
        self.clear_gradients()
        seed_generators(seed)
        before = random_state(self.device)
        outputs = self.forward(args, kwargs)
        inputs = named_inputs(self.names, args, kwargs)
        owned = {**self.parameters, **self.buffers, **inputs}
        found = StepRun(
            outputs={name: kept(tensor) for name, tensor in outputs.items()},
            aliases=_aliases(outputs, owned),
            held=[_describe(each) for each in handed_over(outputs.values())],
        )
        found.differentiable = self.backward(outputs)
        found.random_state = random_state(self.device)
        found.drew = any(not torch.equal(a, b) for a, b in zip(before, found.random_state, strict=True))
        found.gradients = _gradients(self.parameters)
        found.input_gradients = _gradients(inputs)
        found.state = self._state(inputs)
        return found

    def changed(self, found: StepRun) -> frozenset[str]:
        """Names of buffers, parameters and inputs that a first step has changed in place."""
        before = self._initial
        return frozenset(name for name, after in found.state.items() if not _same_bytes(before.get(name), after))

    def _state(self, inputs: Tensors) -> Tensors:
        """What the step may have changed; what it has not is not copied."""
        found = {name: kept(tensor) for name, tensor in {**self.buffers, **self.parameters, **inputs}.items()}
        for name, tensor in found.items():
            before = self._initial.get(name)
            if tensor.layout is torch.strided and _same_bytes(before, tensor):
                found[name] = self._initial[name]
        return found


def _named(tensors: Tensors) -> Tensors:
    """Tensors of a step by the names that they have in the model."""
    return {name.removeprefix("model."): tensor for name, tensor in tensors.items()}


def _numbered(constants: Iterable[Tensor]) -> list[tuple[str, Tensor]]:
    return [(f"constant{i}", tensor) for i, tensor in enumerate(constants)]


def _device_of(step: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    tensors = [*step.parameters(), *step.buffers(), *pytree.tree_leaves((args, kwargs))]
    return next((tensor.device for tensor in tensors if isinstance(tensor, Tensor)), torch.device("cpu"))


def _doubled(value: Any) -> Any:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def _channels_last(value: Any) -> Any:
    """A tensor of four or five dimensions in that layout; any other value as it is."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if not isinstance(value, Tensor) or value.layout is not torch.strided or value.dim() not in formats:
        return value
    return value.detach().to(memory_format=formats[value.dim()]).requires_grad_(value.requires_grad)


def named_inputs(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensors:
    """Tensors among the inputs, by parameter name and place: ``x``, ``batch.tokens``."""
    given: dict[str, Any] = {names[i] if i < len(names) else f"args.{i}": arg for i, arg in enumerate(args)}
    given.update(kwargs)
    found: Tensors = {}
    for path, leaf in pytree.tree_flatten_with_path(given)[0]:
        if isinstance(leaf, Tensor):
            keys = [str(getattr(key, "key", getattr(key, "idx", key))) for key in path]
            found[f"input {'.'.join(keys)}"] = leaf
    return found


def kept(tensor: Tensor) -> Tensor:
    """A copy on the CPU that later steps do not change."""
    return tensor.detach().to("cpu", copy=True)


def _gradients(tensors: Tensors) -> Tensors:
    return {name: kept(tensor.grad) for name, tensor in tensors.items() if tensor.is_leaf and tensor.grad is not None}


def _cotangent(output: Tensor) -> Tensor:
    """The gradient that comes in: 1 for a scalar, else normal numbers of a generator of its own."""
    if output.dim() == 0:
        return torch.ones_like(output)
    drawn = torch.randn(output.shape, generator=torch.Generator().manual_seed(output.numel()))
    return drawn.to(output.device, output.dtype)


def random_state(device: torch.device) -> tuple[Tensor, ...]:
    """The state of the default generators that a step on `device` may draw from."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return tuple(states)


def _same_bytes(before: Tensor | None, after: Tensor) -> bool:
    if before is None or before.shape != after.shape or before.layout is not torch.strided:
        return before is not None and before.shape == after.shape
    return bool(((before == after) | ((before != before) & (after != after))).all())


def _storage(tensor: Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _aliases(outputs: Tensors, owned: Tensors) -> frozenset[tuple[str, str]]:
    strided = {name: tensor for name, tensor in owned.items() if tensor.layout is torch.strided}
    places = {_storage(tensor): name for name, tensor in strided.items() if _storage(tensor)[1]}
    shared = ((name, places.get(_storage(t))) for name, t in outputs.items() if t.layout is torch.strided)
    return frozenset((name, owner) for name, owner in shared if owner is not None)


def _describe(held: HandedOver) -> HeldRegion:
    tensors = []
    for number, tensor in enumerate(held.tensors):
        place, nbytes = _storage(tensor) if tensor.layout is torch.strided else (-1 - number, 0)
        dtype = str(tensor.dtype).removeprefix("torch.")
        tensors.append(HeldTensor(tuple(tensor.shape), dtype, place if nbytes else -1 - number, nbytes))
    return HeldRegion(held.compiled_as, tuple(tensors), len(held.opaque), held.symints)
