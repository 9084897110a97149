"""Where `aotcli check` writes: standard output, files of several formats, a folder for new baselines, and the summary
of a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aotcli.api.baselines import IGNORE_LINE, NEW_SUFFIX, make_folder
from aotcli.cli.output import choose_format, refuse_foreign, write_output
from aotcli.errors import InputError, OutputError
from aotcli.ir.check import CheckRun
from aotcli.render.page import Page

FORMATS = ("text", "json", "markdown", "github", "junit")
_FILE_WIDTH = 100
_SUMMARY = "GITHUB_STEP_SUMMARY"
_WORKSPACE = "GITHUB_WORKSPACE"

Locate = Callable[[str], tuple[str, int] | None]


@dataclass(frozen=True, slots=True)
class Outputs:
    """`stdout` is the format of standard output; `files` are reports by format; `folder` takes new baselines."""

    stdout: str
    files: tuple[tuple[Path, str], ...] = ()
    folder: Path | None = None


def choose_outputs(format_name: str | None, paths: Sequence[str], *, force: bool) -> Outputs:
    """What `--format` and each `-o` mean. Standard output has `--format`, unless a file takes it: then it is text.

    Raises InputError for an unknown format or a name that means none, OutputError for a file that is somebody else's.
    """
    if format_name is not None:
        choose_format(format_name, None, FORMATS)
    files: list[tuple[Path, str]] = []
    folders: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir() or text.endswith(("/", os.sep)) or not path.suffix:
            folders.append(path)
            continue
        files.append((path, _file_format(path, format_name)))
    if len(folders) > 1:
        both = ", ".join(map(str, folders[:2]))
        raise InputError("new baselines go into one folder", why=f"-o names several: {both}", fix="leave one out")
    folder = folders[0] if folders else None
    for path, _ in files:  # refused before models are captured, which takes its time
        if not force:
            refuse_foreign(path)
        if not path.parent.is_dir() and path.parent != folder:
            fix = f"make it first: mkdir -p {path.parent}"
            raise OutputError(f"{path} cannot be written", why=f"there is no folder {path.parent}", fix=fix)
    stdout = format_name or "text"
    if stdout in [name for _, name in files]:
        stdout = "text"
    return Outputs(stdout, tuple(files), folder)


def _file_format(path: Path, format_name: str | None) -> str:
    try:
        return choose_format(None, path, FORMATS)
    except InputError:
        if format_name is None:
            raise
        return format_name


def render_run(run: CheckRun, format_name: str, page: Page, locate: Locate, *, quiet: bool = False) -> str:
    """The run in one format."""
    if format_name == "json":
        from aotcli.render.check_json import render_check_json

        return render_check_json(run)
    if format_name == "markdown":
        from aotcli.render.check_markdown import render_check_markdown

        return render_check_markdown(run)
    if format_name == "junit":
        from aotcli.render.check_junit import render_check_junit

        return render_check_junit(run)
    from aotcli.render.check_text import render_check_text

    text = render_check_text(run, page, quiet=quiet)
    if format_name == "github":
        from aotcli.render.check_github import render_check_github

        return render_check_github(run, text, locate)
    return text


def write_files(run: CheckRun, outputs: Outputs, locate: Locate, *, force: bool) -> None:
    """Write every report, and make the folder for new baselines even where there are none: a job keeps it as it is.

    Raises OutputError where something cannot be written.
    """
    if outputs.folder is not None:
        make_folder(outputs.folder)
    for path, format_name in outputs.files:
        write_output(path, render_run(run, format_name, Page(_FILE_WIDTH), locate), format_name, force=force)


def write_summary(run: CheckRun, note: Callable[[str], None]) -> None:
    """Append the Markdown view to the summary of the job."""
    from aotcli.render.check_markdown import render_check_markdown

    append_summary(render_check_markdown(run), note)


def append_summary(text: str, note: Callable[[str], None]) -> None:
    """Append Markdown to the summary of the job, where GitHub says which file that is."""
    path = os.environ.get(_SUMMARY)
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        note(f"the summary of the job could not be written ({path}: {error.strerror or error})")


def locator(project: Path) -> Locate:
    """How a line of a record is named in the repository: records name files from the project's folder, GitHub from
    its workspace (the current folder, where there is none)."""
    root = Path(os.environ.get(_WORKSPACE) or Path.cwd()).resolve()

    def locate(source: str) -> tuple[str, int] | None:
        file, _, line = source.rpartition(":")
        path = (project / file).resolve()
        if not line.isdecimal() or not path.is_file() or not path.is_relative_to(root):
            return None
        return path.relative_to(root).as_posix(), int(line)

    return locate


def ignore_hint(project: Path) -> str:
    """A line for .gitignore, where the project is under git and does not ignore new baselines yet; else empty."""
    folders = (project, *project.parents)
    top = next((folder for folder in folders if (folder / ".git").exists()), None)
    if top is None or any(_ignores(folder / ".gitignore") for folder in (*folders, project / ".aotcli")):
        return ""
    return f"new baselines are not to be committed: add to .gitignore\n{IGNORE_LINE}"


def _ignores(path: Path) -> bool:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return any(line.strip().endswith(NEW_SUFFIX) for line in lines)
