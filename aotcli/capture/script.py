"""``aotcli trace -- python train.py ARGS``: record the compiled regions of a script's first step, then stop it.

The script runs in this process, as ``__main__`` and on its own data, with `torch.compile` recording. What it prints
goes to stderr. It is stopped after its first optimizer step, or where its second step begins
(`aotcli.capture.script_steps`).
"""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from aotcli.capture.origins import Origins
from aotcli.capture.project import project_root, relative_to_root
from aotcli.capture.recorder import Recorder
from aotcli.capture.script_steps import StepRecorded, StepWatcher
from aotcli.capture.script_trace import Script, script_trace
from aotcli.capture.snapshot import PrimalFacts, SnapshotContext
from aotcli.capture.torch_private import dynamo_limits, reset_dynamo
from aotcli.capture.user_error import explain_error
from aotcli.errors import AotcliError, CaptureError, WorkloadError
from aotcli.ir.trace import CaptureSettings, Trace

Progress = Callable[[str], None]
_OWN_FRAMES = ("/aotcli/capture/",)


def capture_script(command: tuple[str, ...], settings: CaptureSettings, progress: Progress | None = None) -> Trace:
    """Run a script until the first step of each of its compiled regions is recorded.

    `command` is what follows ``--``: ``python train.py ARGS``, ``python -m package.train ARGS`` or ``train.py ARGS``.
    Raises WorkloadError where it is no Python script or the script raises, CaptureError where it compiles nothing.
    """
    script = parse_command(command)
    root = _root(script)
    tensors: dict[int, PrimalFacts] = {}
    origins = Origins({}, root, ignore=_OWN_FRAMES)
    context = SnapshotContext(origins, settings.level, input_name=input_name, with_source=settings.with_source)
    recorder = Recorder(context, tensors, execute=True, progress=progress or (lambda message: None))
    watcher = StepWatcher(recorder, tensors)
    reset_dynamo()
    try:
        with dynamo_limits(), watcher.watching(), stdout_to_stderr():
            _run(script, root)
    finally:
        reset_dynamo()
    if not recorder.regions:
        raise _nothing_recorded(script, watcher)
    return script_trace(script, root, settings, recorder, watcher)


def parse_command(command: tuple[str, ...]) -> Script:
    """The script of a command line. Raises WorkloadError where it is no Python script."""
    words = list(command)
    if words and Path(words[0]).name.startswith("python"):
        words = words[1:]
        while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
            words = words[1:]  # an option of the interpreter, such as -u
    if not words:
        raise WorkloadError("no script was given after --", fix="aotcli trace -- python train.py ARGS")
    if words[0] == "-m" and len(words) > 1:
        return Script(words[1], module=True, arguments=tuple(words[2:]))
    if not words[0].endswith(".py"):
        why = "launchers (torchrun, accelerate) start processes of their own" if words[0] != "-c" else ""
        raise WorkloadError(f"{words[0]} is no Python script", why=why, fix="aotcli trace -- python train.py ARGS")
    if not Path(words[0]).is_file():
        raise WorkloadError(f"no such file: {words[0]}", fix="give the script's path as seen from this folder")
    return Script(words[0], module=False, arguments=tuple(words[1:]))


def _root(script: Script) -> Path:
    """The project of the current folder; for a script outside of it, the script's own."""
    root = project_root(Path.cwd())
    file = Path(script.target).resolve()
    return root if script.module or file.is_relative_to(root) else project_root(file)


_ITEM = re.compile(r"\['([^']+)'\]|\[(\d+)\]|\.([A-Za-z_]\w*)")


def input_name(source: str) -> str:
    """A Dynamo source as an input's name: ``L['batch']['x']`` is ``batch.x``, ``L['args'][0]`` is ``args.0``."""
    items = ["".join(match) for match in _ITEM.findall(source)]
    return ".".join(items[1:] if items[:1] == ["self"] and len(items) > 1 else items) or source


def _run(script: Script, root: Path) -> None:
    """Run the script as Python would. Whatever it raises becomes a WorkloadError with its line."""
    shown = relative_to_root(Path(script.target), root) if not script.module else script.target
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script.target, *script.arguments]
    sys.path.insert(0, str(Path.cwd() if script.module else Path(script.target).resolve().parent))
    try:
        if script.module:
            runpy.run_module(script.target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script.target, run_name="__main__")
    except StepRecorded:
        pass
    except SystemExit as error:
        if error.code not in (None, 0):
            raise WorkloadError(
                f"{shown} ended with exit status {error.code}",
                why="it ended before the first step of a compiled region was done",
                fix="run it without aotcli first, and mend that",
            ) from error
    except (AotcliError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise WorkloadError(
            f"{shown} raised before its first step was recorded",
            why=explain_error(error, root),
            fix="mend that line; --debug shows the whole traceback",
        ) from error
    finally:
        sys.argv, sys.path[:] = argv, path


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send to stderr what is printed to stdout, by Python and by compiled code: stdout is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            kept = os.dup(1)
        except OSError:  # closed, as in some services
            yield
            return
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _nothing_recorded(script: Script, watcher: StepWatcher) -> CaptureError:
    if watcher.compiled:
        return CaptureError(
            f"{script.name} calls torch.compile, but what it compiled was not run",
            why=f"compiled: {', '.join(watcher.compiled)}",
            fix="call what torch.compile returns, not the model itself",
        )
    return CaptureError(
        f"{script.name} compiles nothing",
        why="regions are recorded where torch.compile compiles them",
        fix="add before the training loop:  model = torch.compile(model)",
    )
