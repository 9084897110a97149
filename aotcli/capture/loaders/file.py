"""``path.py`` and ``path.py:NAME``: a model file of the user's."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from aotcli.capture.project import own_modules, project_root, relative_to_root
from aotcli.capture.user_error import explain_error
from aotcli.capture.workload import Definition, Workload
from aotcli.errors import WorkloadError
from aotcli.ir.trace import CaptureSettings


def file_workload(path: Path, name: str, settings: CaptureSettings) -> Workload:
    """The workload of a model file. Raises WorkloadError where there is no such file."""
    if not path.is_file():
        raise _no_such_file(path)
    file = path.resolve()
    root = project_root(Path.cwd())
    if not file.is_relative_to(root):
        root = project_root(file)
    spec = relative_to_root(file, root) + (f":{name}" if name else "")

    def define() -> Definition:
        from aotcli.capture.define import define_from_namespace

        with fresh_imports():
            namespace, owned = _run_file(file, root)
            return define_from_namespace(namespace, name, relative_to_root(file, root), root, settings, owned=owned)

    title = file.stem if not name else f"{file.stem}-{name.replace('.', '-')}"
    return Workload(title, spec, root, define, (file,))


def _no_such_file(path: Path) -> WorkloadError:
    folder = path.parent
    if path.is_dir():
        names = sorted(each.name for each in path.glob("*.py"))
        fix = f"name a file in it: {path.as_posix()}/{names[0]}" if names else "name a Python file"
        return WorkloadError(f"{path} is a folder", fix=fix)
    if not folder.is_dir():
        return WorkloadError(
            f"no such file: {path}", why=f"there is no folder {folder}", fix="give the path as seen from this folder"
        )
    names = sorted(each.name for each in folder.glob("*.py"))
    near = get_close_matches(path.name, names, n=3, cutoff=0.4)
    shown = ", ".join((folder / each).as_posix() for each in near)
    fix = f"did you mean {shown}?" if near else "give the path of a model file"
    return WorkloadError(f"no such file: {path}", fix=fix)


@contextmanager
def fresh_imports() -> Iterator[None]:
    """Forget the user's modules that an earlier definition imported, so that tensors they made are made anew.

    A module that was loaded before aotcli ran any of the user's code (a notebook's, a test's) stays as it is.
    """
    for name in list(_IMPORTED):
        sys.modules.pop(name, None)
    _IMPORTED.clear()
    before = set(own_modules())
    try:
        yield
    finally:
        _IMPORTED.update(set(own_modules()) - before)


_IMPORTED: set[str] = set()


@contextmanager
def own_modules_kept() -> Iterator[None]:
    """Leave the user's modules as they are now, whatever is defined anew meanwhile.

    Dynamo looks globals up in the module of a function's name: a model that runs after another definition of the same
    file would find that one's.
    """
    before, imported = {name: sys.modules[name] for name in own_modules()}, set(_IMPORTED)
    try:
        yield
    finally:
        for name in _IMPORTED - before.keys():
            sys.modules.pop(name, None)
        sys.modules.update(before)
        _IMPORTED.clear()
        _IMPORTED.update(imported)


def _run_file(file: Path, root: Path) -> tuple[dict[str, Any], bool]:
    """The names that a model file defines, and whether they were made now, so that nothing else uses them.

    Its folder (or its package's) is where its imports are looked up first.
    """
    folder, module_name = _module_of(file)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    shown = relative_to_root(file, root)
    try:
        if "." in module_name:
            known = module_name in sys.modules
            module = importlib.import_module(module_name)
            if _is_module_of(module, file):
                return vars(module), not known
        return vars(_execute(file, module_name)), True
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        raise WorkloadError(
            f"{shown} ended the program while it was imported (exit {error.code})",
            fix="put what only a script does under `if __name__ == '__main__':`",
        ) from error
    except Exception as error:
        raise WorkloadError(
            f"{shown} raised while it was imported",
            why=explain_error(error, root),
            fix="mend that line; --debug shows the whole traceback",
        ) from error


def _module_of(file: Path) -> tuple[Path, str]:
    """The folder to import from, and the module's name: dotted where the file is part of a package."""
    parts = [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _is_module_of(module: ModuleType, file: Path) -> bool:
    return os.path.realpath(module.__file__ or "") == str(file)


def _execute(file: Path, name: str) -> ModuleType:
    """Run a file as a module. It gets a name of its own where another module has its stem (``random.py``)."""
    present = sys.modules.get(name)
    if present is not None and not _is_module_of(present, file):
        name = f"{name}_model_file"
    loader = SourceFileLoader(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    if spec is None:
        raise WorkloadError(
            f"{file.name} cannot be imported",
            why="Python has no loader for a file of this kind",
            fix="give a file that ends in .py",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
