"""Why Dynamo ended a graph early, or gave a frame up: the part of the seam that reads its reasons."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from torch import fx

_SKIPPED = re.compile(r"frame skipped: (\S+) \((.+) line (\d+)\)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def break_reason(gm: fx.GraphModule) -> tuple[str, str | None] | None:
    """Why Dynamo ended this graph, if not at the end of the function: (reason, ``file:line`` with absolute path).

    The reason is Dynamo's headline and explanation, without hints, addresses and links.
    """
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is None or not getattr(reason, "graph_break", False):
        return None
    frames = list(reason.user_stack)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    return _headline(str(reason.reason)), where


def _headline(reason: str) -> str:
    """Dynamo's headline and explanation."""
    lines = [line.strip() for line in _ADDRESS.sub("", reason).splitlines() if line.strip()]
    text = lines[0] if lines else "graph break"
    explanation = next((line for line in lines[1:] if line.startswith("Explanation:")), None)
    return text if explanation is None else f"{text}: {explanation.removeprefix('Explanation:').strip()}"


@contextlib.contextmanager
def skipped_frames() -> Iterator[list[tuple[str, str]]]:
    """Gives a list; at the end it holds the frames that Dynamo gave up meanwhile, for a break in a loop, and ran
    uncompiled as a whole: (reason, ``file:line`` with absolute path). No graph tells of them."""
    from torch._dynamo.utils import counters

    before = dict(counters["unimplemented"])
    found: list[tuple[str, str]] = []
    yield found
    for text, count in counters["unimplemented"].items():
        skipped = _SKIPPED.search(text)
        if skipped and count > before.get(text, 0):
            reason = f"{_headline(text)} It is in a loop, so all of {skipped[1]} runs uncompiled."
            found.append((reason, f"{skipped[2]}:{skipped[3]}"))
