"""``package.module:NAME``: a model in an importable module."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from aotcli.capture.loaders.file import fresh_imports
from aotcli.capture.project import is_own_file, project_root
from aotcli.capture.user_error import explain_error
from aotcli.capture.workload import Definition, Workload
from aotcli.errors import WorkloadError
from aotcli.ir.trace import CaptureSettings


def package_workload(spec: str, settings: CaptureSettings) -> Workload:
    """The workload of a name in a module; the module is looked up in the current folder first."""
    module_name, _, name = spec.partition(":")
    root = project_root(Path.cwd())

    def define() -> Definition:
        from aotcli.capture.define import define_from_namespace

        with fresh_imports():
            known = module_name in sys.modules
            module = _import(module_name, root)
            owned = not known and is_own_file(Path(module.__file__ or module_name))
            return define_from_namespace(vars(module), name, module_name, root, settings, owned=owned)

    return Workload(name.replace(".", "-"), spec, root, define)


def _import(module_name: str, root: Path) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise WorkloadError(
                f"{module_name} raised on import",
                why=explain_error(error, root),
                fix="mend that line; --debug shows the whole traceback",
            ) from error
        raise WorkloadError(
            f"no module {module_name!r}",
            why=f"{error.name!r} is not importable from {Path.cwd().name}/",
            fix="run aotcli in the folder that holds the package, or install it in this environment",
        ) from error
    except KeyboardInterrupt:
        raise
    except Exception as error:
        raise WorkloadError(
            f"{module_name} raised on import",
            why=explain_error(error, root),
            fix="mend that line; --debug shows the whole traceback",
        ) from error
