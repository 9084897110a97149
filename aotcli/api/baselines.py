"""Where baselines are kept, and how a new one takes an old one's place. `aotcli check` and the pytest plugin share it.

    store = BaselineStore(project / ".aotcli")
    store.read("gpt")                       # Baseline, or None where there is none
    store.write_new("gpt", baseline)        # beside it, as gpt.new.aot.json
    store.accept("gpt", reason="...")       # gpt.new.aot.json becomes gpt.aot.json
    store.drop_new("gpt")                   # the plan is the baseline's again

    new_baseline(trace, plan, name=..., model=...)   # what check and the plugin write
    accepted_partitions(baseline)                    # the plan that was accepted, assembled

Baselines are records: `aotcli show`, `partition` and `diff` read them.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from aotcli import __version__
from aotcli.analysis.assemble import assemble
from aotcli.analysis.summary import Plan
from aotcli.errors import InputError, OutputError, RecordError, VerificationError
from aotcli.ir.baseline import Accepted, Baseline, accept_regions, accepted_decision, dump_baseline, load_baseline
from aotcli.ir.check import Figures
from aotcli.ir.files import read_text, write_text
from aotcli.ir.partition import Partition
from aotcli.ir.privacy import hashed, without_paths
from aotcli.ir.trace import Trace

FOLDER = ".aotcli"
SUFFIX = ".aot.json"
NEW_SUFFIX = ".new.aot.json"
IGNORE_LINE = f"{FOLDER}/*{NEW_SUFFIX}"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """The folder of a project's baselines. It need not exist before something is written."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"

    def new_path(self, name: str) -> Path:
        return self.folder / f"{name}{NEW_SUFFIX}"

    def names(self) -> tuple[str, ...]:
        """The names of all baselines, sorted."""
        files = (path.name for path in self.folder.glob(f"*{SUFFIX}"))
        return tuple(sorted(name.removesuffix(SUFFIX) for name in files if not name.endswith(NEW_SUFFIX)))

    def new_names(self) -> tuple[str, ...]:
        """The names of all that wait to be accepted, sorted."""
        return tuple(sorted(path.name.removesuffix(NEW_SUFFIX) for path in self.folder.glob(f"*{NEW_SUFFIX}")))

    def read(self, name: str) -> Baseline | None:
        """The baseline of that name, None where there is none.

        Raises RecordError where the file is damaged, no record, of a newer schema, or the baseline of another name.
        """
        path = self.path(name)
        fix = f'take it from git again, or make it anew:\naotcli check {name}; aotcli accept {name} --reason "..."'
        return _read(path, name, fix) if path.is_file() else None

    def write_new(self, name: str, baseline: Baseline, folder: Path | None = None) -> Path:
        """Write `baseline` beside the accepted one (or into `folder`, where it is an artefact), and give its path.

        Raises InputError for a name that no file can have, OutputError where the file cannot be written.
        """
        check_name(name)
        path = self.new_path(name) if folder is None else folder / f"{name}{NEW_SUFFIX}"
        make_folder(path.parent)
        write_text(dump_baseline(baseline), path)
        return path

    def drop_new(self, name: str) -> None:
        """Delete what waited to be accepted, where something did. Raises OutputError where it cannot be deleted."""
        try:
            self.new_path(name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{self.new_path(name)} cannot be deleted", why=error.strerror or str(error), fix="delete it yourself"
            ) from None

    def accept(self, name: str, reason: str = "") -> Baseline:
        """Make what waits under `name` the baseline, with the user's reason, and give it.

        Raises InputError where nothing waits, RecordError where it is damaged, OutputError where the baseline cannot
        be written.
        """
        waiting = self.read_new(name)
        if waiting.accepted is None:
            raise RecordError(
                f"{shown(self.new_path(name))} is a record, and no baseline",
                why="it holds no plan to accept",
                fix=f"let check write it: aotcli check {name}",
            )
        accepted = dataclasses.replace(waiting.accepted, reason=" ".join(reason.split()))
        baseline = dataclasses.replace(waiting, accepted=accepted)
        # By force: a damaged file in its place may no longer look like one of ours.
        write_text(dump_baseline(baseline), self.path(name), force=True)
        self.drop_new(name)
        return baseline

    def read_new(self, name: str) -> Baseline:
        """What waits to be accepted. Raises InputError where nothing does, and what `read` raises."""
        check_name(name)
        path = self.new_path(name)
        if not path.is_file():
            raise self._nothing_waits(name)
        return _read(path, name, f"check again: aotcli check {name}")

    def _nothing_waits(self, name: str) -> InputError:
        waiting = self.new_names()
        near = get_close_matches(name, waiting, n=1)
        if near:
            fix = f"did you mean {near[0]!r}?"
        elif waiting:
            fix = f"waiting are {', '.join(waiting)}"
        else:
            fix = f"check first: aotcli check {name}"
        why = f"there is no {shown(self.new_path(name))}"
        why += "; its baseline is what check found last" if name in self.names() else ""
        return InputError(f"nothing waits to be accepted for {name!r}", why=why, fix=fix)


def _read(path: Path, name: str, fix: str) -> Baseline:
    try:
        baseline = load_baseline(read_text(path))
    except RecordError as error:
        advice = error.fix if "of version" in error.what else fix
        raise RecordError(f"{shown(path)}: {error.what}", why=error.why, fix=advice) from None
    own = baseline.accepted.name if baseline.accepted is not None else name
    if own != name:
        raise RecordError(
            f"{shown(path)} is the baseline of {own!r}, not of {name!r}",
            why="it says so itself: the file was copied or renamed",
            fix=fix,
        )
    return baseline


def check_name(name: str) -> None:
    """Raises InputError for a name that is no plain file name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or name.endswith(".new"):
        raise InputError(
            f"{name!r} cannot name a baseline",
            why="it is part of a file's name: letters, digits, '_', '-' and '.', not ending in '.new'",
            fix="give it another name",
        )


def make_folder(folder: Path) -> None:
    """Make a folder that is to be written into. Raises OutputError where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputError(f"the folder {shown(folder)} cannot be made", why=why, fix="remove what is there") from None


def shown(path: Path) -> str:
    """`path` as seen from the current folder, where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def new_baseline(trace: Trace, plan: Plan, *, name: str, model: str, test: str = "") -> Baseline:
    """What waits to be accepted: a captured step with one strategy's plan of it.

    `model` is how the configuration (or the test) names the model, `test` the id of the test that keeps the baseline.
    """
    accepted = Accepted(
        name=name,
        model=model_label(model, trace),
        strategy=plan.label,
        aotcli=__version__,
        figures=plan_figures(plan.partitions),
        regions=accept_regions(trace, plan.partitions),
        test=test,
    )
    return Baseline(trace, accepted)


def model_label(model: str, trace: Trace) -> str:
    """How a baseline names its model: not at all where names are hashed."""
    return hashed(model) if trace.settings.anonymize else without_paths(model)


def plan_figures(partitions: Iterable[Partition]) -> Figures:
    """What the plans of all regions cost together. The peak is the largest: regions need not be alive together."""
    plans = list(partitions)
    return Figures(
        saved_bytes=sum(plan.saved_bytes for plan in plans),
        peak_bytes=max((plan.peak_bytes for plan in plans), default=0),
        recompute_flops=sum(plan.recompute_flops for plan in plans),
    )


def accepted_partitions(baseline: Baseline) -> tuple[Partition, ...]:
    """The plan that was accepted, one partition for each region, as it was decided then.

    Raises RecordError where the baseline holds no plan, or one that cannot be carried out.
    """
    accepted = baseline.accepted
    if accepted is None:
        raise RecordError("the record holds no plan", why="it is no baseline", fix="aotcli check writes one")
    try:
        return tuple(
            assemble(graph, accepted_decision(graph, region), strategy=accepted.strategy.partition(":")[0])
            for graph, region in zip(baseline.trace.regions, accepted.regions, strict=True)
        )
    except VerificationError as error:
        raise RecordError(
            f"the baseline is damaged: {error.what}",
            why=error.why,
            fix="restore it from version control, or accept anew",
        ) from None
