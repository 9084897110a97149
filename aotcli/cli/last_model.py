"""The last workload traced in a project, remembered in the user's cache folder for commands that name no model."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotcli.cli.options import GivenCapture

if TYPE_CHECKING:
    from aotcli.cli.target import Target

_SCHEMA = "aotcli.last"


@dataclass(frozen=True, slots=True)
class LastModel:
    """What was traced, from the folder it was traced in, with the capture options that were given."""

    spec: str
    given: GivenCapture
    traced_at: float


def remember(target: Target) -> None:
    """Remember what a command has just traced. Where the cache folder cannot be written, nothing is remembered."""
    given = dataclasses.asdict(target.given)
    document = {"schema": _SCHEMA, "spec": target.spec, "folder": str(Path.cwd()), "given": given, "time": time.time()}
    path = _file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{time.monotonic_ns()}.tmp")
        temporary.write_text(json.dumps(document), encoding="utf-8")
        temporary.replace(path)


def recall() -> LastModel | None:
    """The last workload traced in this project, if its file is still there."""
    try:
        document = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        return None
    known = {each.name for each in dataclasses.fields(GivenCapture)}
    given = {key: _frozen(value) for key, value in document.get("given", {}).items() if key in known}
    spec = _spec_from(Path(document["folder"]), document["spec"])
    return LastModel(spec, GivenCapture(**given), float(document["time"])) if spec is not None else None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _spec_from(folder: Path, spec: str) -> str | None:
    """A spec that was given in `folder`, as seen from here; None where its file is gone."""
    path = spec.partition(":")[0]
    if not path.endswith(".py") or Path(path).is_absolute():
        return spec
    if not (folder / path).is_file():
        return None
    if folder == Path.cwd():
        return spec
    return str((folder / path).resolve()) + spec[len(path) :]


def _file() -> Path:
    from aotcli.capture.cache import cache_folder
    from aotcli.capture.project import project_root

    root = str(project_root(Path.cwd()))
    return cache_folder() / "last" / f"{hashlib.sha256(root.encode()).hexdigest()[:16]}.json"
