"""Hold models against their baselines, and accept new ones: `aotcli check` and `aotcli accept`.

    run = check([CheckedModel("gpt", "gpt.py", "gpt.py", limits=...)], BaselineStore(Path(".aotcli")))
    run.exit_code                                 # 0 ok, 1 a breach or no baseline, 2 bad input, 3 the environment
    accept(BaselineStore(Path(".aotcli")), ["gpt"], reason="...")

A single step that is planned already is judged by `aotcli.api.judging.judge`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from aotcli import api
from aotcli.api.baselines import BaselineStore, shown
from aotcli.api.judging import Keep, judge
from aotcli.errors import AotcliError, InputError, RecordError
from aotcli.ir.baseline import Baseline
from aotcli.ir.check import Acceptance, CheckedModel, CheckRun, Failure, ModelCheck

Progress = Callable[[str], None]
_INTERNAL = 3


def check(
    models: Sequence[CheckedModel],
    store: BaselineStore,
    *,
    keep: Keep | None = None,
    known: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CheckRun:
    """Capture, plan and judge every model; one that fails does not hide the others.

    `known` are all names of the configuration, where baselines that no model has are to be named.
    """
    found = [
        check_model(model, store, keep, None if progress is None else _under(heading(model, models), progress))
        for model in models
    ]
    return CheckRun(tuple(found), () if known is None else find_orphans(store, known))


def heading(model: CheckedModel, models: Sequence[CheckedModel]) -> str:
    """``gpt (2 of 5)``, for progress."""
    return f"{model.name} ({models.index(model) + 1} of {len(models)})" if len(models) > 1 else model.name


def _under(head: str, progress: Progress) -> Progress:
    progress(head)
    return lambda message: progress(f"{head}: {message}")


def check_model(
    model: CheckedModel, store: BaselineStore, keep: Keep | None = None, progress: Progress | None = None
) -> ModelCheck:
    """One model. What goes wrong is a `failure` of the result, and is never raised."""
    started = time.monotonic()
    result = _checked(model, store, keep or Keep(), progress)
    return dataclasses.replace(result, elapsed_s=time.monotonic() - started)


def _checked(model: CheckedModel, store: BaselineStore, keep: Keep, progress: Progress | None) -> ModelCheck:
    try:
        result = api.partition(
            api.load(model.target) if model.is_record else model.target,
            strategy=model.strategy,
            alternatives=False,
            cache=model.cache,
            progress=progress,
            settings=None if model.is_record else model.settings,
        )
        return judge(model, result.trace, result.plan, store, keep)
    except AotcliError as error:
        failure = Failure(error.what, error.why, error.fix, error.exit_code)
    except Exception as error:  # noqa: BLE001 - a fault of ours in one model must not hide what the others have
        what = f"aotcli itself failed: {type(error).__name__}: {error}"
        failure = Failure(what, "this is a fault in aotcli, not in your model", "report it", _INTERNAL)
    return ModelCheck(model, shown(store.path(model.name)), failure=failure)


def find_orphans(store: BaselineStore, known: Sequence[str]) -> tuple[str, ...]:
    """Paths of baselines that neither a model of the configuration nor a test keeps."""
    return tuple(
        shown(store.path(name)) for name in store.names() if name not in known and not _is_of_test(store, name)
    )


def _is_of_test(store: BaselineStore, name: str) -> bool:
    try:
        baseline = store.read(name)
    except RecordError:  # what cannot be read is nobody's
        return False
    return baseline is not None and baseline.accepted is not None and bool(baseline.accepted.test)


def accept(store: BaselineStore, names: Sequence[str], reason: str = "") -> tuple[Acceptance, ...]:
    """Make what waits under each name its baseline. Nothing is accepted where one of them cannot be.

    Raises InputError where nothing waits under a name, or where a baseline would be replaced without a reason;
    RecordError where what waits is damaged, OutputError where a baseline cannot be written.
    """
    waiting = [store.read_new(name) for name in names]
    before = [_readable(store, name) for name in names]
    if not reason.strip():
        replaced = [name for name in names if store.path(name).is_file()]
        if replaced:
            raise InputError(
                f"{shown(store.path(replaced[0]))} is replaced, and no reason was given",
                why="the reason stands in the baseline, where a reviewer reads it",
                fix=f'aotcli accept {" ".join(names)} --reason "why it may change"',
            )
    for name in names:
        store.accept(name, reason)
    return tuple(
        _acceptance(store, name, reason, old, new) for name, old, new in zip(names, before, waiting, strict=True)
    )


def _acceptance(store: BaselineStore, name: str, reason: str, before: Baseline | None, waiting: Baseline) -> Acceptance:
    assert waiting.accepted is not None
    old = None if before is None or before.accepted is None else before.accepted.figures
    path = store.path(name)
    return Acceptance(name, shown(path), path.stat().st_size, waiting.accepted.figures, old, reason.strip())


def _readable(store: BaselineStore, name: str) -> Baseline | None:
    try:
        return store.read(name)
    except RecordError:  # what is damaged may be replaced
        return None
