"""The project that a model belongs to: what paths are relative to, and which modules are its own."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

_MARKS = ("pyproject.toml", ".git", "setup.py", "setup.cfg")


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` (a file or folder) that holds a project, else `start`'s own folder."""
    start = start.resolve()
    folder = start if start.is_dir() else start.parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in _MARKS):
            return candidate
    return folder


def relative_to_root(path: Path, root: Path) -> str:
    """`path` as text relative to `root`; its name alone where it lies elsewhere, so that no home path is shown."""
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


@cache
def _foreign_folders() -> tuple[str, ...]:
    """Folders whose files are no project's own: the standard library, installed packages, aotcli itself."""
    paths = sysconfig.get_paths()
    folders = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders.append(Path(__file__).parents[1])
    both = {*map(str, folders), *(str(folder.resolve()) for folder in folders)}
    return tuple(folder + os.sep for folder in both)


def is_own_file(path: Path) -> bool:
    """Whether a source file is the user's: not of the standard library, an installed package or aotcli."""
    return _is_own(str(path.absolute())) and _is_own(str(path.resolve()))


def _is_own(path: str) -> bool:
    installed = "/site-packages/" in path or "/dist-packages/" in path
    return not installed and not path.startswith(_foreign_folders())


def own_modules() -> dict[str, Path]:
    """The loaded modules that are the user's own, with their files."""
    found: dict[str, Path] = {}
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        # Thousands of modules are loaded: the text is looked at before the disk is.
        if isinstance(origin, str) and origin.endswith(".py") and origin.startswith(os.sep) and _is_own(origin):
            found[name] = Path(os.path.realpath(origin))
    return {name: path for name, path in found.items() if _is_own(str(path))}
