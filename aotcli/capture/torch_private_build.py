"""Private torch for building a workload: fake tensors, dispatch modes, dynamic dimensions.

A continuation of torch_private.py; what is said there holds here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


def dispatch_mode() -> type:
    """The base class of dispatch modes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    return TorchDispatchMode


def new_fake_mode() -> Any:
    """A FakeTensorMode that accepts real tensors among fake ones."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def is_fake(value: object) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def forget_converted(fake_mode: Any) -> None:
    """Drop the mode's weak references to what it converted: a module cannot swap a parameter that has any."""
    fake_mode.fake_tensor_converter.tensor_memo.clear()


@contextlib.contextmanager
def sampling_skips_fake() -> Iterator[None]:
    """Let `torch.nn.init.trunc_normal_` leave fake tensors alone: it resamples until a test on the values holds."""
    from torch.nn import init

    original = init._no_grad_trunc_normal_

    def skipping(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return tensor if is_fake(tensor) else original(tensor, *args, **kwargs)

    init._no_grad_trunc_normal_ = skipping
    try:
        yield
    finally:
        init._no_grad_trunc_normal_ = original


def is_tracing() -> bool:
    """Whether ops are being recorded into a graph now, by Dynamo or by a proxy mode, instead of computed."""
    from torch._guards import TracingContext
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return TracingContext.try_get() is not None or get_proxy_mode() is not None


def weak_storage(storage: torch.UntypedStorage) -> Any:
    """A reference that does not keep a storage alive; ``.expired()`` tells."""
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(storage)


def data_dependent_errors() -> tuple[type[BaseException], ...]:
    """What fake tensors raise where a result depends on data that they do not have."""
    from torch._subclasses import fake_tensor
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    return (
        fake_tensor.DataDependentOutputException,
        fake_tensor.DynamicOutputShapeException,
        fake_tensor.UnsupportedFakeTensorException,
        GuardOnDataDependentSymNode,
    )


def mark_dynamic(tensor: torch.Tensor, dim: int, *, lower: int | None, upper: int | None) -> None:
    """Demand that a dimension be traced as a symbol."""
    import torch._dynamo

    torch._dynamo.mark_dynamic(tensor, dim, min=lower, max=upper)


def maybe_mark_dynamic(tensor: torch.Tensor, dim: int) -> None:
    """Ask for a symbol; the model may still specialize the dimension."""
    import torch._dynamo

    torch._dynamo.maybe_mark_dynamic(tensor, dim)
