"""What a node's value is: a tensor's layout and bytes, a symbolic number, or an opaque object."""

from __future__ import annotations

import re
from dataclasses import dataclass

Dim = int | str
"""An extent: an integer, or the text of a symbolic expression such as ``2*s77``."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor.

    `shape` and `stride` hold integers, or expressions over the graph's symbols; `hint` is the shape with every
    symbol replaced by its traced size, and None where the shape has no symbol. `nbytes` is numel x itemsize (what
    PyTorch's partitioner counts); `storage_nbytes` is the size of the storage behind it. Tensors with the same
    `storage` are views of one allocation; -1 means that the tensor has none (sparse, for instance).
    """

    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    dtype: str
    device: str
    nbytes: int
    storage: int
    storage_nbytes: int
    hint: tuple[int, ...] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape in integers: the hint where there is one."""
        return self.hint if self.hint is not None else tuple(int(dim) for dim in self.shape)


@dataclass(frozen=True, slots=True)
class SymbolSpec:
    """A symbolic int, float or bool: its expression over the graph's symbols, and the traced value."""

    kind: str  # "int", "float", "bool"
    expr: str
    hint: int | float | bool | None = None


@dataclass(frozen=True, slots=True)
class OpaqueSpec:
    """A value that is no tensor and no number: `kind` is "backward_state", "script", "opaque" or "graph"."""

    kind: str
    type_name: str


Leaf = TensorSpec | SymbolSpec | OpaqueSpec | None
Value = Leaf | tuple["Value", ...]


def torch_nbytes(value: Value) -> int:
    """Bytes as PyTorch's partitioner counts them (`_size_of`): numel x itemsize, 1 for a symbol, tuples summed."""
    if isinstance(value, TensorSpec):
        return value.nbytes
    if isinstance(value, SymbolSpec):
        return 1
    if isinstance(value, tuple):
        return sum(part.nbytes for part in value if isinstance(part, TensorSpec))
    return 0


def tensor_leaves(value: Value) -> tuple[TensorSpec, ...]:
    """Every tensor in a value, in order."""
    if isinstance(value, TensorSpec):
        return (value,)
    if isinstance(value, tuple):
        return tuple(leaf for part in value for leaf in tensor_leaves(part))
    return ()


def identifiers(value: Value) -> list[str]:
    """Names that occur in a value's expressions, in order of appearance; may hold function names such as FloorDiv."""
    texts: list[str] = []
    if isinstance(value, TensorSpec):
        texts = [dim for dim in (*value.shape, *value.stride) if isinstance(dim, str)]
    elif isinstance(value, SymbolSpec):
        texts = [value.expr]
    elif isinstance(value, tuple):
        return list(dict.fromkeys(name for part in value for name in identifiers(part)))
    return list(dict.fromkeys(name for text in texts for name in _IDENTIFIER.findall(text)))
