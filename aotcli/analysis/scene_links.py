"""Links of a scene, added up from the values that pass from box to box."""

from __future__ import annotations

from dataclasses import dataclass, field

from aotcli.analysis.scene import Change, Link, LinkKind
from aotcli.ir.tensor import Value, tensor_leaves


@dataclass
class _Flow:
    """What passes along a link: bytes of each value, and how each differs from the other graph."""

    kind: LinkKind
    values: dict[object, int] = field(default_factory=dict[object, int])
    changes: set[Change] = field(default_factory=set[Change])


class LinkPile:
    """Links by their ends. A link from a box to itself is none."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str], _Flow] = {}

    def add(
        self, source: str, target: str, kind: LinkKind, value: object, nbytes: int, change: Change = Change.SAME
    ) -> None:
        """One more value, named by `value`, that passes from box to box. Seen again, it counts once."""
        if source != target:
            flow = self._flows.setdefault((source, target), _Flow(kind))
            flow.values[value] = nbytes
            flow.changes.add(change)

    def links(self) -> tuple[Link, ...]:
        """All links, in the order in which they were first added."""
        return tuple(
            Link(
                source,
                target,
                flow.kind,
                sum(flow.values.values()),
                len(flow.values),
                next(iter(flow.changes)) if len(flow.changes) == 1 else Change.SAME,
            )
            for (source, target), flow in self._flows.items()
        )


def value_nbytes(value: Value) -> int:
    """Bytes of all tensors of a value."""
    return sum(leaf.nbytes for leaf in tensor_leaves(value))
