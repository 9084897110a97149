"""Compare two training steps: what each saves, which graph changed how, and what was decided otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.analysis.diff_planfile import Sketch, pair_sketches
from aotcli.api.diff_sides import Source, as_sides, is_record_name, read_source, split_reference
from aotcli.api.result import PartitionResult
from aotcli.errors import InputError
from aotcli.ir.difference import Difference
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.diff_rows import DiffRows
from aotcli.render.page import Page

Progress = Callable[[str], None]
Comparable = Trace | PartitionResult | str | PathLike[str]
SUFFIXES = (".aot.json", ".aot.json.gz")


@dataclass(frozen=True, repr=False)
class DiffResult:
    """A difference, and the ways to show it. Printing it shows what the command line shows. `words` are the two sides
    as they were named, for commands to copy."""

    difference: Difference
    words: tuple[str, str] = ("A", "B")

    @property
    def is_empty(self) -> bool:
        """Whether graphs and plans are the same."""
        return self.difference.is_empty

    def differs(self, only: str | None = None) -> bool:
        """Whether there is anything to show: with `only`, in what is "saved" or in the "graph"."""
        return DiffRows(only=only).differs(self.difference)

    def text(self, page: Page | None = None, rows: DiffRows | None = None, *, quiet: bool = False) -> str:
        """The view for a terminal: the verdict first."""
        from aotcli.render.diff_text import render_diff_text

        words = () if quiet else self.words
        return render_diff_text(self.difference, page or Page(), rows or DiffRows(), words)

    def markdown(self, rows: DiffRows | None = None) -> str:
        """GitHub-flavoured Markdown, for a pull request."""
        from aotcli.render.diff_markdown import render_diff_markdown

        return render_diff_markdown(self.difference, rows or DiffRows())

    def github(self, rows: DiffRows | None = None) -> str:
        """Annotations of a GitHub workflow, on the lines that save more."""
        from aotcli.render.diff_github import render_diff_github

        return render_diff_github(self.difference, rows or DiffRows())

    def json(self) -> str:
        """The same as JSON of schema "aotcli.diff"."""
        from aotcli.render.diff_json import render_diff_json

        return render_diff_json(self.difference)

    def __repr__(self) -> str:
        return self.text()


def diff(
    left: Comparable,
    right: Comparable,
    *,
    strategy: str | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    settings: CaptureSettings | None = None,
    **trace_options: Any,
) -> DiffResult:
    """What differs between two training steps.

    Each side is a `Trace`, the result of `aotcli.partition`, or a name: of a record, a plan file or a model, with
    ``@STRATEGY`` after it if it is to be planned by another strategy than `strategy` ("mincut", unless both sides are
    records that hold PyTorch's own decision). `settings` and `trace_options` are for models, as in `aotcli.trace`;
    without them a model that is held against a record is captured as that was.

    Raises RecordError for a file that is damaged or too new, InputError for what cannot be compared, and what `trace`
    and `partition` raise.
    """
    from aotcli.api import settings_with

    chosen = settings_with(settings, trace_options)
    sources = [_source(side, chosen, cache, shown) for side, shown in ((left, "A"), (right, "B"))]
    if settings is None and not trace_options:
        traces = [source.content for source in sources if isinstance(source.content, Trace)]
        sources = [_like(source, traces[0]) if traces and source.content is None else source for source in sources]
    return diff_sources(sources[0], sources[1], strategy=strategy, progress=progress)


def _like(source: Source, record: Trace) -> Source:
    """A model that is held against a record, to be captured as that was."""
    if record.settings.anonymize:
        return source
    settings = dataclasses.replace(record.settings, with_source=False, with_torch=False)
    return dataclasses.replace(source, settings=settings)


def _source(side: Comparable, settings: CaptureSettings, cache: bool, shown: str) -> Source:
    if isinstance(side, Trace):
        return Source(f"{side.model.name} ({shown})", content=side)
    if isinstance(side, PartitionResult):
        return Source(f"{side.trace.model.name} ({shown})", content=side.trace, result=side.plan)
    if not isinstance(side, str | Path):
        raise InputError(
            f"a {type(side).__name__} cannot be compared",
            fix="give a trace (aotcli.trace), a plan (aotcli.partition), or the name of a record or model",
        )
    path, strategy = split_reference(str(side))
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder", fix="aotcli diff FOLDER FOLDER compares the records in two of them")
    if is_record_name(path):
        return read_source(path, strategy)
    return Source(path, strategy, spec=path, settings=settings, cache=cache)


def diff_sources(
    left: Source, right: Source, *, strategy: str | None = None, progress: Progress | None = None
) -> DiffResult:
    """The difference of two sources; see `diff`."""
    mine, other = as_sides(left, right, strategy, progress)
    words = left.words, right.words
    if progress is not None:
        progress("comparing")
    if isinstance(mine, Sketch) or isinstance(other, Sketch):
        pairs = pair_sketches(*(each if isinstance(each, Sketch) else each.trace for each in (mine, other)))
        return DiffResult(diff_plans(_side(left, mine), _side(right, other), pairs), words)
    return DiffResult(diff_plans(mine, other), words)


def _side(source: Source, side: DiffSide | Sketch) -> DiffSide:
    return DiffSide(side.trace, side.plan, source.shown, sketched=side.nodes) if isinstance(side, Sketch) else side


# Folders of records.


@dataclass(frozen=True, repr=False)
class FolderDiff:
    """The differences of the records in two folders, by name; and the names that only one of them has."""

    left: str
    right: str
    results: Mapping[str, DiffResult]
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.differs()

    def differs(self, only: str | None = None) -> bool:
        """Whether any record differs, or one is missing."""
        missing = self.only_left or self.only_right
        return bool(missing) or any(each.differs(only) for each in self.results.values())

    def text(self, page: Page | None = None, rows: DiffRows | None = None, *, quiet: bool = False) -> str:
        """A table of all records, then those that differ one by one."""
        from aotcli.render.diff_folders import render_folders_text

        words = {} if quiet else {name: each.words for name, each in self.results.items()}
        return render_folders_text(self._named(), page or Page(), rows or DiffRows(), self._missing(), words)

    def markdown(self, rows: DiffRows | None = None) -> str:
        from aotcli.render.diff_folders import render_folders_markdown

        return render_folders_markdown(self._named(), rows or DiffRows(), self._missing())

    def github(self, rows: DiffRows | None = None) -> str:
        from aotcli.render.diff_folders import render_folders_github

        return render_folders_github(self._named(), rows or DiffRows(), self._missing())

    def json(self) -> str:
        """JSON of schema "aotcli.diff-folders"."""
        from aotcli.render.diff_json import render_folders_json

        return render_folders_json(self._named(), self._missing())

    def _named(self) -> dict[str, Difference]:
        return {name: each.difference for name, each in self.results.items()}

    def _missing(self) -> tuple[tuple[str, str], ...]:
        """(name, folder that lacks it)."""
        return (*((name, self.right) for name in self.only_left), *((name, self.left) for name in self.only_right))

    def __repr__(self) -> str:
        return self.text()


def diff_folders(
    left: str, right: str, *, strategies: tuple[str | None, str | None] = (None, None), strategy: str | None = None
) -> FolderDiff:
    """Compare records of one name in two folders; `strategies` are the sides' own (``FOLDER@STRATEGY``).

    Raises InputError where neither folder holds a record, RecordError for one that is damaged.
    """
    files = [_records(Path(folder)) for folder in (left, right)]
    if not files[0] and not files[1]:
        raise InputError(
            f"neither {left} nor {right} holds a record",
            why="records are files that end in .aot.json or .aot.json.gz",
            fix=f"aotcli trace MODEL -o {Path(left) / 'model.aot.json'}",
        )
    results = {
        name: diff_sources(
            read_source(files[0][name], strategies[0]), read_source(files[1][name], strategies[1]), strategy=strategy
        )
        for name in sorted(files[0].keys() & files[1].keys())
    }
    missing = [tuple(sorted(files[i].keys() - files[1 - i].keys())) for i in (0, 1)]
    return FolderDiff(left, right, results, *missing)


def _records(folder: Path) -> dict[str, Path]:
    """Records of a folder by their name without suffix."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)
        if suffix is not None and path.is_file():
            found.setdefault(path.name.removesuffix(suffix), path)
    return found
