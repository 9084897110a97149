"""The software and devices at hand. Every capture first asks whether torch is there and of a supported version."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys

from aotcli.errors import EnvironmentProblem
from aotcli.ir.environment import Device, Doctor, Part

OLDEST_TORCH = (2, 11)
FIRST_UNSUPPORTED_TORCH = (2, 16)
_RANGE = "2.11 to 2.15"
_INSTALL = 'python -m pip install "torch>=2.11,<2.16"'
_CPU_WHEEL = "--index-url https://download.pytorch.org/whl/cpu"
# (distribution, is it required, what for, how to get it)
_PARTS = (
    ("networkx", True, "graph analysis", "python -m pip install networkx"),
    ("typer", True, "the command line", "python -m pip install typer"),
    ("rich", True, "progress and help", "python -m pip install rich"),
    ("pydot", True, "DOT pictures", "python -m pip install pydot"),
    ("transformers", False, "models by hf:NAME", "python -m pip install transformers"),
    ("timm", False, "models by timm:NAME", "python -m pip install --no-deps timm torchvision"),
)


def require_torch() -> None:
    """Import torch, or raise EnvironmentProblem that says what is wrong and how to mend it."""
    version, fix = _torch()
    if version is None:
        raise EnvironmentProblem(
            "torch is not installed, or does not import",
            why=f"capturing a model needs it; `show` and `partition` of a record do not. {_import_failure()}".strip(),
            fix=fix,
        )
    if fix:
        raise EnvironmentProblem(f"torch {version} is not supported", why=f"aotcli works with torch {_RANGE}", fix=fix)


def examine() -> Doctor:
    """Versions of every part, and the devices that torch can use. Never raises for a part that is missing."""
    version, fix = _torch()
    parts = [Part("python", platform.python_version(), True, "everything", _python_fix())]
    parts.append(Part("torch", version, True, "capturing and running models", fix))
    for name, required, use, how in _PARTS:
        found = _distribution_version(name)
        parts.append(Part(name, found, required, use, "" if found else how))
    parts.append(_graphviz())
    return Doctor(tuple(parts), _devices(usable_torch=version is not None))


def _torch() -> tuple[str | None, str]:
    """(torch's version or None, how to mend it or "")."""
    how = f"{_INSTALL}   (without CUDA: add {_CPU_WHEEL})"
    try:
        version = str(importlib.import_module("torch").__version__)
    except (ImportError, OSError, AttributeError):  # OSError: a shared library is missing or not for this machine
        return None, how
    return version, "" if is_supported(version) else how


def is_supported(version: str) -> bool:
    """Whether a torch of this version is one that aotcli works with; development builds count as their release."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and OLDEST_TORCH <= (int(match[1]), int(match[2])) < FIRST_UNSUPPORTED_TORCH


def _import_failure() -> str:
    try:
        importlib.import_module("torch")
    except (ImportError, OSError) as error:
        return f"Importing it says: {error}"
    return ""


def _python_fix() -> str:
    return "" if (3, 11) <= sys.version_info[:2] <= (3, 13) else "use Python 3.11, 3.12 or 3.13"


def _distribution_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _graphviz() -> Part:
    how = "apt install graphviz, or brew install graphviz"
    path = shutil.which("dot")
    if path is None:
        return Part("graphviz", None, False, "pictures with --engine dot", how)
    try:
        result = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Part("graphviz", None, False, "pictures with --engine dot", how)
    match = re.search(r"version (\S+)", result.stderr + result.stdout)
    return Part("graphviz", match[1] if match else "unknown", False, "pictures with --engine dot")


def _devices(*, usable_torch: bool) -> tuple[Device, ...]:
    name = platform.processor() or platform.machine()
    if not usable_torch:
        return (Device("cpu", True, name), Device("cuda", False, "unknown without torch"))
    return (Device("cpu", True, name), _cuda())


def _cuda() -> Device:
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        return Device("cuda", True, ", ".join(names))
    if torch.version.cuda is None and torch.version.hip is None:
        return Device("cuda", False, f"torch {torch.__version__} is built without CUDA")
    return Device("cuda", False, f"torch is built for CUDA {torch.version.cuda}, but no device or driver is found")
