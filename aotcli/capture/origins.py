"""Where a node comes from: the module that owns it and the line of the user's code."""

from __future__ import annotations

import re
import site
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import fx

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_ITEM = re.compile(r"\['([^']*)'\]|\[(\d+)\]|\.(\w+)")
_CONTAINERS = frozenset({"_modules", "_parameters", "_buffers"})


def path_of_source(source: str) -> str:
    """A Dynamo source as a dotted path: ``L['self']._modules['h']._modules['0'].fc`` and ``L['self'].h.0.fc`` become
    ``h.0.fc``.

    The first item (the local or global variable) is dropped.
    """
    items = [next(part for part in match if part) for match in _ITEM.findall(source) if any(match)]
    return ".".join(item for item in items[1:] if item not in _CONTAINERS)


class Origins:
    """Finds module path, module class, and ``file:line`` of nodes of one capture.

    `modules` maps `id(module)` to its qualified name in the user's model; Dynamo keys its module stacks by that id, so
    paths are right even in frames after a graph break, whose `self` is a submodule. `root` is the project's folder:
    files under it are named relative to it, installed ones relative to site-packages, others by their name alone.
    Frames of files that contain a text of `ignore` are passed over; an op with no other frames gets `default`.
    """

    def __init__(
        self, modules: Mapping[int, str], root: Path, ignore: tuple[str, ...] = (), default: str | None = None
    ) -> None:
        self._modules = {str(key): name for key, name in modules.items()}
        self._root = root.resolve()
        self._sites = [Path(p).resolve() for p in {*site.getsitepackages(), sysconfig.get_paths()["purelib"]}]
        self._ignore = ignore
        self._lines: dict[str, tuple[str | None, str | None]] = {}
        self._files: dict[str, str] = {}
        self._default = None if default is None else self.place(default)

    def name_of(self, module: object) -> str | None:
        """The qualified name of a module of the user's model; None for any other object."""
        return self._modules.get(str(id(module)))

    def module(self, node: fx.Node) -> tuple[str | None, str | None]:
        """(module path, module class) of the innermost module; (None, None) where tracing left no trace."""
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        if not stack:
            return None, None
        for key, (path, kind) in reversed(list(stack.items())):
            name = self._modules.get(key.split("@")[0])
            if name is None:
                name = self._from_path(path) if path else None
            if name is not None:
                return name, _class_name(kind)
        return None, None

    def _from_path(self, path: str) -> str:
        name = path_of_source(path)
        # A capture of ours wraps the user's model as attribute `model`; a user's script (no known modules) does not.
        return name.removeprefix("model").removeprefix(".") if self._modules and name.split(".")[0] == "model" else name

    def line(self, node: fx.Node) -> tuple[str | None, str | None]:
        """(``file:line`` of the innermost frame of the user's or a library's code, that line's text)."""
        trace = node.meta.get("stack_trace")
        if not trace:
            return None, None
        found = self._lines.get(trace)
        if found is None:
            found = self._lines[trace] = self._innermost(trace)
        return found

    def _innermost(self, trace: str) -> tuple[str | None, str | None]:
        lines = trace.splitlines()
        for position in range(len(lines) - 1, -1, -1):
            match = _FRAME.search(lines[position])
            if match and not any(part in match[1] for part in self._ignore):
                text = lines[position + 1].strip() if position + 1 < len(lines) else ""
                return f"{self.file(match[1])}:{match[2]}", text or None
        return self._default, None

    def file(self, path: str) -> str:
        """A file's name without anything that tells on the machine."""
        found = self._files.get(path)
        if found is None:
            found = self._files[path] = self._relative(Path(path))
        return found

    def _relative(self, path: Path) -> str:
        if not path.is_absolute():
            return path.as_posix()
        resolved = path.resolve()
        # Site-packages first: a virtual environment often lies inside the project.
        for folder in (*self._sites, self._root):
            if resolved.is_relative_to(folder):
                return resolved.relative_to(folder).as_posix()
        return resolved.name

    def place(self, location: str) -> str:
        """A ``file:line`` with an absolute path, made relative."""
        path, _, number = location.rpartition(":")
        return f"{self.file(path)}:{number}"


def _class_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).rsplit(".", 1)[-1].rstrip("'>")
