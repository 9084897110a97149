"""Writing results into files: the format by the file's name, whole or not at all, and never over somebody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from aotcli.errors import InputError, OutputError
from aotcli.ir.files import is_ours, write_atomically

FORMATS = ("text", "json", "markdown")
PLAN_SUFFIXES = (".aot.json", ".aot.json.gz")
_SUFFIX_FORMATS = {
    ".txt": "text",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".py": "text",
    ".xml": "junit",
    ".svg": "svg",
    ".png": "png",
    ".dot": "dot",
    ".gv": "dot",
    ".html": "html",
}
# How a file says that aotcli wrote it, so that it may be replaced: as its first line, or as JSON's schema.
# What must start otherwise (XML) brings its mark along.
_MARKS = {
    "text": "# written by aotcli\n",
    "github": "# written by aotcli\n",
    "markdown": "<!-- written by aotcli -->\n",
    "json": "",
    "html": "",
    "junit": "",
}
_OURS = (
    b"# written by aotcli",
    b"<!-- written by aotcli -->",
    b'<?xml version="1.0" encoding="utf-8"?>\n<!-- written by aotcli -->',
    b"// written by aotcli",
)
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_MARK = b"Software\0aotcli"  # as aotcli/render/png.py writes it


def choose_format(given: str | None, path: Path | None, formats: Sequence[str] = FORMATS) -> str:
    """The format asked for, else the one that the output's name means, else the first of `formats`.

    `formats` are those of the command. Raises InputError for an unknown format, or a name that means none.
    """
    if given is not None:
        if given not in formats:
            near = get_close_matches(given, formats, n=1) or formats[:1]
            raise InputError(f"--format {given}", why=f"it is one of {', '.join(formats)}", fix=f"--format {near[0]}")
        return given
    if path is None:
        return formats[0]
    found = _SUFFIX_FORMATS.get(path.suffix.lower())
    if found is None or found not in formats:
        known = [suffix for suffix, name in _SUFFIX_FORMATS.items() if name in formats]
        plans = ", and .aot.json for a plan file" if formats is FORMATS else ""
        raise InputError(
            f"-o {path}: the name does not say which format is meant",
            why=f"known are {', '.join(sorted(known))}{plans}",
            fix=f"add --format, or write -o {path.with_suffix(known[-1] if formats is not FORMATS else '.json')}",
        )
    return found


def is_plan_file(path: Path | None) -> bool:
    return path is not None and path.name.endswith(PLAN_SUFFIXES)


def write_output(path: Path, text: str, format_name: str, *, force: bool) -> None:
    """Write `text` to `path`, replacing only a file that aotcli wrote, unless `force`.

    Raises OutputError where `path` is somebody else's file or cannot be written; nothing is left half-written.
    """
    write_bytes(path, (_MARKS[format_name] + text).encode("utf-8"), force=force)


def write_bytes(path: Path, data: bytes, *, force: bool) -> None:
    """Write `data`, which brings its own mark, to `path`. Raises what `write_output` raises."""
    if not force:
        refuse_foreign(path)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written",
            why=error.strerror or str(error),
            fix="give another path" if path.parent.is_dir() else f"make the folder first: mkdir -p {path.parent}",
        ) from error


def write_stdout(data: bytes) -> None:
    """Write bytes to standard output. Where the reader went away, the program ends, silently.

    Raises OutputError where standard output cannot be written for another reason.
    """
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would flush, and complain, at exit
        if isinstance(error, BrokenPipeError):
            raise SystemExit(0) from None
        raise OutputError(
            "standard output cannot be written", why=error.strerror or str(error), fix="free space, or write elsewhere"
        ) from error


def refuse_foreign(path: Path) -> None:
    """Raises OutputError where `path` is a folder, or a file that aotcli did not write."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder", fix=f"give a file, such as -o {path / 'plan.md'}")
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(max(_OURS, key=len)))
        ours = head.startswith(_OURS) or (head.startswith(_PNG_SIGNATURE) and _PNG_MARK in head) or is_ours(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputError(f"{path} cannot be read", why=why, fix="give another path") from error
    if not ours:
        raise OutputError(
            f"{path} exists and was not written by aotcli",
            why="it would be lost",
            fix="give another path, or --force to replace it",
        )
