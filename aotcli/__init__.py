"""See, decide and check what a PyTorch training step saves for its backward.

    import aotcli

    trace = aotcli.trace(model, (x, y))
    print(aotcli.partition(trace, strategy="mincut"))
    step = aotcli.compile(model, strategy="mincut", backend="inductor")

Nothing heavy is imported until a function is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aotcli.api import compile as compile  # noqa: A004
    from aotcli.api import diff as diff
    from aotcli.api import draw as draw
    from aotcli.api import drawing as drawing
    from aotcli.api import explain as explain
    from aotcli.api import lint as lint
    from aotcli.api import load as load
    from aotcli.api import partition as partition
    from aotcli.api import report as report
    from aotcli.api import save as save
    from aotcli.api import trace as trace
    from aotcli.api import validate as validate
    from aotcli.lowering.partitioner import Partitioner as Partitioner

__version__ = "0.1.0"
__all__ = [
    "Partitioner",
    "__version__",
    "compile",
    "diff",
    "draw",
    "drawing",
    "explain",
    "lint",
    "load",
    "partition",
    "report",
    "save",
    "trace",
    "validate",
]

_FROM_API = frozenset(
    {
        "compile",
        "diff",
        "draw",
        "drawing",
        "explain",
        "lint",
        "load",
        "partition",
        "report",
        "save",
        "trace",
        "validate",
    }
)


def __getattr__(name: str) -> Any:
    if name in _FROM_API:
        from aotcli import api

        return getattr(api, name)
    if name == "Partitioner":
        from aotcli.lowering.partitioner import Partitioner

        return Partitioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
