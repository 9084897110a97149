"""Globs over module paths, ops and source lines.

In a module path ``*`` is any part, or any text within one (``h.*``, ``ln*``), and ``**`` any number of parts
(``**.fc``). A pattern means a module and all that lies inside it, unless the caller wants the module's own ops only.
``(model)`` is the model's own ops. Ops are matched by their full name, without overload, without namespace, or by the
label that aotcli prints (``aten.addmm.default``, ``aten.addmm``, ``addmm``, ``layer norm``).
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

from aotcli.analysis.layers import MODEL_ITSELF
from aotcli.analysis.op_names import node_label
from aotcli.ir.joint import JointGraph, Node

GETITEM = "operator.getitem"
_LINE = re.compile(r".+:(\d+|\*)$")


def matches_module(pattern: str, path: str | None, *, submodules: bool = True) -> bool:
    """Whether a module path matches. Nodes of unknown module match nothing but ``**``."""
    if pattern == MODEL_ITSELF:
        return path == ""
    if path is None or path == "":
        return pattern == "**"
    return _module_regex(pattern, submodules).fullmatch(path) is not None


@cache
def _module_regex(pattern: str, submodules: bool) -> re.Pattern[str]:
    text = ""
    for number, part in enumerate(pattern.split(".")):
        if part == "**":
            text += r"(?:[^.]+\.)*" if number == 0 else r"(?:\.[^.]+)*"
        else:
            dot = "" if number == 0 or text.endswith(r"\.)*") else r"\."
            text += dot + _part_regex(part)
    if pattern == "**":
        return re.compile(r".*")
    return re.compile(text + (r"(?:\..*)?" if submodules else ""))


def _part_regex(part: str) -> str:
    """One part of a path: ``*``, ``?`` and ``[...]`` as the shell has them, within the part."""
    return re.sub(r"\\\*", "[^.]*", re.sub(r"\\\?", "[^.]", re.escape(part))).replace(r"\[", "[").replace(r"\]", "]")


def matches_op(pattern: str, graph: JointGraph, node: Node) -> bool:
    """Whether a node's op matches; a part of a tuple also goes by the op that made the tuple."""
    return any(fnmatchcase(name, pattern) for name in op_names(graph, node))


def op_names(graph: JointGraph, node: Node) -> tuple[str, ...]:
    """All that a node's op is called."""
    maker = graph[node.refs[0]] if node.target == GETITEM and node.refs else node
    label = node_label(graph, node)
    return (maker.target, maker.packet, maker.packet.rpartition(".")[2], label)


def is_line(pattern: str) -> bool:
    """Whether a pattern is ``FILE:LINE``."""
    return _LINE.match(pattern) is not None


def matches_line(pattern: str, source: str | None) -> bool:
    """Whether ``file:line`` matches: the whole path, or its end (``gpt.py:29``)."""
    if source is None:
        return False
    return fnmatchcase(source, pattern) or fnmatchcase(source, f"*/{pattern}")
