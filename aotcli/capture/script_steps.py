"""Recording what a running script compiles, and telling when its first step is over.

`torch.compile` is replaced while the script runs: whatever backend it asks for, its regions go to the recorder. A step
is over when an optimizer has stepped and everything that was compiled has run; or, for scripts without a torch
optimizer, where a region is called on the same parameters once more after a backward.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from aotcli.capture.recorder import Recorder
from aotcli.capture.snapshot import PrimalFacts
from aotcli.ir.joint import NodeKind

MOST_STEPS_WITHOUT_REGION = 3
"""Optimizer steps after which a script that compiled nothing is stopped: it may warm up, but not train to its end."""

MOST_REPEATS_WITHOUT_TRAINING = 8
"""Repeated calls after which a script with no optimizer and no backward is taken for inference: it may check first."""

_KEPT_OPTIONS = ("fullgraph", "dynamic")


class StepRecorded(BaseException):
    """Ends the script. Not an Exception, so that `except Exception` in the script lets it through."""


@dataclass
class _Compiled:
    """One call of torch.compile: what was compiled, and whether it has run."""

    target: Any
    called: bool = False

    @property
    def module(self) -> nn.Module | None:
        """The compiled module, also where one of its methods was compiled (`module.compile()`)."""
        owner = getattr(self.target, "__self__", self.target)
        return owner if isinstance(owner, nn.Module) else None


class StepWatcher:
    """Sends every region that the script compiles to `recorder` and raises StepRecorded when the first step is over.

    `tensors`, which the recorder reads, is filled with what is known of the compiled modules.
    """

    def __init__(self, recorder: Recorder, tensors: dict[int, PrimalFacts]) -> None:
        self._recorder = recorder
        self._tensors = tensors
        self._compiled: list[_Compiled] = []
        self._optimizer_steps = 0
        self._backward_ran = False
        self._trains = False
        self._repeats = 0

    @property
    def compiled(self) -> tuple[str, ...]:
        """Names of what was given to torch.compile."""
        names = [type(each.module).__name__ if each.module is not None else each.target for each in self._compiled]
        return tuple(str(getattr(name, "__name__", name)) for name in names)

    def parameters(self) -> list[tuple[int, int, str]]:
        """(elements, bytes, dtype) of each parameter of the compiled modules that have run."""
        modules = [each.module for each in self._compiled if each.called and each.module is not None]
        found = {id(parameter): parameter for module in modules for parameter in module.parameters()}
        return [
            (each.numel(), each.numel() * each.dtype.itemsize, str(each.dtype).removeprefix("torch."))
            for each in found.values()
        ]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """The context in which the script runs."""
        original = torch.compile
        # Undisabled, a compiled optimizer step would trace the hook.
        hook: Any = torch.compiler.disable(self._after_optimizer_step)
        handle = register_optimizer_step_post_hook(hook)
        make_optimizer = Optimizer.__init__

        def counting(optimizer: Optimizer, *args: Any, **options: Any) -> None:
            self._trains = True
            make_optimizer(optimizer, *args, **options)

        torch.compile = self._recording(original)
        Optimizer.__init__ = counting  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            torch.compile = original
            Optimizer.__init__ = make_optimizer
            handle.remove()

    def _recording(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001 - stands in for torch.compile
            if model is None:
                return lambda target: compile(target, **options)
            if options.get("disable"):
                return original(model, **options)
            entry = _Compiled(model)
            self._compiled.append(entry)
            kept = {key: options[key] for key in _KEPT_OPTIONS if key in options}
            return original(model, backend=self._backend(entry), **kept)

        return compile

    def _backend(self, entry: _Compiled) -> Callable[..., Any]:
        def backend(graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
            entry.called = True
            self._learn(entry.module)
            return self._counting(self._recorder.backend(graph, inputs))

        return backend

    def _learn(self, module: nn.Module | None) -> None:
        """Names of a module's tensors, taken now: they may have been replaced since it was compiled."""
        if module is None:
            return
        self._tensors.update({id(each): PrimalFacts(NodeKind.BUFFER, name) for name, each in module.named_buffers()})
        self._tensors.update({id(each): PrimalFacts(NodeKind.PARAM, name) for name, each in module.named_parameters()})

    def _counting(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The region's function, which sees when it is called on the same parameters again.

        Blocks that are compiled one by one share a region: then the next call is the next block's, not the next step.
        """
        seen: set[tuple[int, ...]] = set()

        def run(*args: Any) -> Any:
            key = tuple(id(each) for each in args if isinstance(each, nn.Parameter))
            if key in seen and self._may_stop():
                raise StepRecorded
            seen.add(key)
            outputs = compiled(*args)
            self._watch_backward(outputs)
            return outputs

        return run

    def _may_stop(self) -> bool:
        """At a repeated call: after a backward, or where the script seems to train nothing."""
        self._repeats += 1
        trains = self._trains or any(region.graph.has_backward for region in self._recorder.regions)
        return self._backward_ran or (not trains and self._repeats >= MOST_REPEATS_WITHOUT_TRAINING)

    def _watch_backward(self, outputs: Any) -> None:
        for output in outputs if isinstance(outputs, (list, tuple)) else (outputs,):
            if isinstance(output, Tensor) and output.grad_fn is not None:
                output.grad_fn.register_prehook(self._on_backward)
                return

    def _on_backward(self, _gradients: Any) -> None:
        self._backward_ran = True

    def _after_optimizer_step(self, *_: Any) -> None:
        self._optimizer_steps += 1
        if self._recorder.regions:
            if all(each.called for each in self._compiled):
                raise StepRecorded
        elif self._optimizer_steps >= MOST_STEPS_WITHOUT_REGION:
            raise StepRecorded
