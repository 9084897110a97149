"""Captures of earlier runs, in the user's cache folder.

An entry belongs to one spec, one set of options and one version of aotcli. It holds the content hashes of the model
file and of what it imports outside site-packages, and the versions of the packages that were loaded: where one of
them changed, the entry is stale. So a lookup imports neither torch nor the model. Nothing here raises for the state
of the disk: a damaged entry is none, and where nothing can be written nothing is kept.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import platform
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from aotcli.capture.project import own_modules
from aotcli.capture.workload import Workload
from aotcli.errors import RecordError
from aotcli.ir.serial import dump_trace, load_trace
from aotcli.ir.trace import CaptureSettings, Trace

MOST_ENTRIES = 200
"""Beyond this, the oldest entries are deleted."""
_SUFFIX = ".capture.gz"
_ENVIRONMENT_PREFIXES = ("TORCH", "PYTORCH", "CUDA_VISIBLE_DEVICES")
_WITHOUT_EFFECT = frozenset({"TORCHINDUCTOR_CACHE_DIR"})  # and Inductor sets it itself


def cache_folder() -> Path:
    """Where captures are kept: $AOTCLI_CACHE_DIR, else ``aotcli`` in the platform's cache folder."""
    own = os.environ.get("AOTCLI_CACHE_DIR")
    if own:
        return Path(own)
    platforms = os.environ.get("XDG_CACHE_HOME")
    if platforms:
        return Path(platforms) / "aotcli"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home folder
        return Path(tempfile.gettempdir()) / f"aotcli-{os.getuid()}"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "aotcli"


def find_capture(workload: Workload, settings: CaptureSettings) -> Trace | None:
    """The capture of the same workload with the same settings, where nothing it depends on has changed since."""
    try:
        with gzip.open(_entry(workload, settings), "rt", encoding="utf-8") as stream:
            depends = json.loads(stream.readline())
            if not _is_current(depends):
                return None
            return load_trace(stream.read())
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecordError):
        return None  # absent, unreadable, cut short, or of another format


def store_capture(workload: Workload, settings: CaptureSettings, trace: Trace) -> bool:
    """Keep a capture, in the process that made it. Returns whether it was kept."""
    files = {*workload.files, *own_modules().values()}
    try:
        if any(file.stat().st_mtime > workload.loaded_at for file in files):
            return False  # edited while it was captured: the hash would be of something else
        depends = {"files": {str(file): _hash_file(file) for file in sorted(files)}, "packages": _loaded_packages()}
        text = f"{json.dumps(depends, sort_keys=True)}\n{dump_trace(trace, source=settings.with_source)}"
        path = _entry(workload, settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, gzip.compress(text.encode(), compresslevel=1))
    except OSError:
        return False
    _delete_oldest()
    return True


def cache_size() -> tuple[int, int]:
    """Number of entries, and their bytes on disk."""
    sizes = [status.st_size for _, status in _entries()]
    return len(sizes), sum(sizes)


def clear_cache() -> tuple[int, int]:
    """Delete every capture. Returns the number of entries deleted, and their bytes."""
    return _delete(list(_entries()))


def _entry(workload: Workload, settings: CaptureSettings) -> Path:
    identity = {
        "spec": workload.spec,
        "root": str(workload.root),
        "settings": asdict(settings),
        "aotcli": _own_sources(),
        "python": [platform.python_version(), platform.machine(), sys.platform],
        "environment": {key: os.environ[key] for key in os.environ if _matters(key)},
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
    return cache_folder() / "captures" / f"{key}{_SUFFIX}"


def _matters(variable: str) -> bool:
    """Whether an environment variable may change a capture."""
    return variable.startswith(_ENVIRONMENT_PREFIXES) and variable not in _WITHOUT_EFFECT


def _is_current(depends: dict[str, Any]) -> bool:
    installed = _installed_packages()
    return all(installed.get(name) == version for name, version in depends["packages"].items()) and all(
        _hash_file(Path(file)) == digest for file, digest in depends["files"].items()
    )


def _hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _own_sources() -> str:
    """A hash of aotcli's own sources."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _installed_packages() -> dict[str, str]:
    """Versions of the installed distributions by name, read off their folders' names: thousands of times as fast as
    importlib.metadata."""
    found: dict[str, str] = {}
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):  # noqa: PTH208 - names are all that is wanted
                if entry.endswith(".dist-info"):
                    name, _, version = entry.removesuffix(".dist-info").partition("-")
                    found[name.lower().replace("-", "_")] = version
    return found


def _loaded_packages() -> dict[str, str]:
    """Those of the installed distributions that have been imported in this process (under their own name)."""
    loaded = {name.partition(".")[0].lower() for name in list(sys.modules)}
    return {name: version for name, version in _installed_packages().items() if name in loaded}


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _entries() -> Iterator[tuple[Path, os.stat_result]]:
    with contextlib.suppress(OSError):
        for path in sorted((cache_folder() / "captures").iterdir()):
            if path.name.endswith((_SUFFIX, ".tmp")):
                with contextlib.suppress(OSError):
                    yield path, path.stat()


def _delete_oldest() -> None:
    by_age = sorted(_entries(), key=lambda entry: entry[1].st_mtime, reverse=True)
    _delete(by_age[MOST_ENTRIES:])


def _delete(entries: list[tuple[Path, os.stat_result]]) -> tuple[int, int]:
    count = nbytes = 0
    for path, status in entries:
        with contextlib.suppress(OSError):
            path.unlink()
            count, nbytes = count + 1, nbytes + status.st_size
    return count, nbytes
