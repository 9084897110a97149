"""Graph breaks: the step is cut in pieces, and what one hands to the next is kept whatever would be cheaper.

No partitioner sees across a break, so nothing of one piece can be computed again in the backward of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.lint._contract import Hit, Rule, Subject
from aotcli.ir.finding import Remedy
from aotcli.ir.trace import GraphBreak

_FULL_STORY = "TORCH_LOGS=graph_breaks python train.py"
_REMEDIES = (
    (
        "torch.compiler.disable",
        Remedy("let the compiler in: take `torch.compiler.disable` off, or call the function outside the blocks"),
    ),
    ("torch._dynamo.graph_break", Remedy("take the call of torch._dynamo.graph_break out")),
    (
        "builtin operator `print`",
        Remedy(
            "drop the print, or let it run later", ("torch._dynamo.config.reorderable_logging_functions.add(print)",)
        ),
    ),
    (
        "logging.Logger method",
        Remedy(
            "drop the call, or let it be skipped", ("torch._dynamo.config.ignore_logging_functions.add(logger.info)",)
        ),
    ),
    (
        "Tensor.item()",
        Remedy(
            "keep the number a tensor, or let it be traced", ("torch._dynamo.config.capture_scalar_outputs = True",)
        ),
    ),
    (
        "Dynamic shape operator",
        Remedy(
            "write it without a shape that depends on data (torch.where), or let it be traced",
            ("torch._dynamo.config.capture_dynamic_output_shape_ops = True",),
        ),
    ),
    ("generic_jump", Remedy("write the branch on a tensor's value as torch.where, or as torch.cond")),
)
_OTHER = Remedy("see what the compiler says of it, and take it out of the step", (_FULL_STORY,))
_MOST_CHARACTERS = 200


class GraphBreakFound(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT007"
    name: ClassVar[str] = "graph break"
    summary: ClassVar[str] = "the step is cut in pieces, across which nothing can be recomputed"
    rank: ClassVar[int] = 0

    def find(self, subject: Subject) -> Iterator[Hit]:
        for each in subject.trace.breaks:
            yield _hit(each)


def _hit(found: GraphBreak) -> Hit:
    return Hit(
        region="",
        values=(),
        module=None,
        module_type=None,
        what="",
        shape=None,
        dtype="",
        source=found.source,
        nbytes=0,
        detail=_reason(found.reason),
        remedy=next((remedy for sign, remedy in _REMEDIES if sign in found.reason), _OTHER),
    )


def _reason(text: str) -> str:
    """What the compiler says, in one line: its heading, where it goes on for long."""
    line = " ".join(text.split())
    if len(line) > _MOST_CHARACTERS and ": " in line:
        line = line.partition(": ")[0]
    return line if len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 3] + "..."
