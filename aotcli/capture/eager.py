"""What eager keeps for the backward of a step: tensors that autograd saves, and those that checkpointing holds.

The first are seen by `torch.autograd.graph.saved_tensors_hooks`. Selective activation checkpointing keeps the results
it must not recompute in a table of its own, past those hooks: they are the results still alive after the forward.
Bytes are counted by storage, once each; parameters, buffers, inputs and the step's outputs are no activations, as in
`aotcli.ir.partition.Category`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from aotcli.capture import torch_private, torch_private_build
from aotcli.capture.torch_private import pytree
from aotcli.capture.user_error import describe_error
from aotcli.capture.workload import BuiltWorkload
from aotcli.ir.trace import EagerSaved


class _Storages:
    """A set of storages. It holds them, so that the address of one cannot come back as another's."""

    def __init__(self, tensors: Iterable[Any] = ()) -> None:
        self._held: dict[int, Any] = {}
        self.nbytes: dict[int, int] = {}
        for tensor in tensors:
            self.add(tensor)

    def add(self, tensor: Any) -> None:
        """Add the storages behind a tensor: several for a sparse tensor or a wrapper subclass."""
        for part in _dense_parts(tensor):
            storage = part.untyped_storage()
            self._held[storage._cdata] = storage
            self.nbytes[storage._cdata] = storage.nbytes()


class _HigherOrder(Exception):
    """The step runs a higher-order op."""


class _Results(torch_private_build.dispatch_mode()):
    """A dispatch mode that remembers the storage of every op's results, without keeping any alive.

    Raises _HigherOrder at a higher-order op (a cond, a map): those run compiled even in eager, and not under a mode.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, tuple[Any, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, torch_private.HigherOrderOperator):
            raise _HigherOrder
        results = func(*args, **(kwargs or {}))
        for result in results if isinstance(results, (tuple, list)) else (results,):
            for part in _dense_parts(result):
                storage = part.untyped_storage()
                self._seen[storage._cdata] = (torch_private_build.weak_storage(storage), storage.nbytes())
        return results

    def alive(self) -> dict[int, int]:
        """Bytes of the storages that something still holds."""
        return {key: nbytes for key, (reference, nbytes) in self._seen.items() if not reference.expired()}


def _dense_parts(value: Any) -> list[Tensor]:
    """The tensors with a storage that a value is made of; [] for what is no tensor."""
    if not isinstance(value, Tensor):
        return []
    flatten = getattr(type(value), "__tensor_flatten__", None)
    if flatten is not None:
        names, _ = flatten(value)
        return [part for name in names for part in _dense_parts(getattr(value, name))]
    if value.layout is torch.sparse_coo:
        return [value._indices(), value._values()]
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [value.crow_indices(), value.col_indices(), value.values()]
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [value.ccol_indices(), value.row_indices(), value.values()]
    return [value]


def measure_eager(built: BuiltWorkload) -> tuple[EagerSaved | None, tuple[str, ...]]:
    """Run the step's forward once, uncompiled, and count what is saved; on fake tensors where the workload is fake.

    Returns None and a note that says why where the step cannot be run.
    """
    try:
        try:
            return _measure(built, _Results()), ()
        except _HigherOrder:
            torch_private.reset_dynamo()  # what was begun under the mode is not to be found again
            return _measure(built, None), ()
    except Exception as error:  # noqa: BLE001 - the user's model may raise anything; the count is left out
        return None, (f"what eager saves is not known: the step raised {_first_line(error)}",)


def _measure(built: BuiltWorkload, results: _Results | None) -> EagerSaved:
    """The count of one run; without `results`, what selective checkpointing holds is not seen."""
    given = pytree.tree_leaves((built.args, built.kwargs))
    before = _Storages([*built.step.parameters(), *built.step.buffers(), *given, *built.constants])
    saved = _Storages()

    def pack(tensor: Tensor) -> Tensor:
        if not torch_private_build.is_tracing():  # a higher-order op traces its branches as it runs
            saved.add(tensor)
        return tensor

    with (
        built.fake_mode if built.fake_mode is not None else nullcontext(),
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        torch.enable_grad(),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        results if results is not None else nullcontext(),
    ):
        output = built.step(*built.args, **built.kwargs)
    returned = _Storages(pytree.tree_leaves(output))
    kept = {**(results.alive() if results is not None else {}), **saved.nbytes}
    inside = kept.keys() - before.nbytes.keys() - returned.nbytes.keys()
    from_outside = saved.nbytes.keys() & before.nbytes.keys()
    return EagerSaved(
        saved_bytes=sum(kept[key] for key in inside),
        saved_input_bytes=sum(saved.nbytes[key] for key in from_outside),
        tensors=len(inside),
    )


def _first_line(error: BaseException) -> str:
    return describe_error(error).splitlines()[0]
