"""Files of aotcli on disk: read within limits, written whole or not at all, never over somebody else's."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
import zlib
from os import PathLike
from pathlib import Path

from aotcli.errors import OutputError, RecordError
from aotcli.ir.document import MOST_BYTES

_GZIP_MAGIC = b"\x1f\x8b"
_SIGNATURE_BYTES = 256
STDIN = "-"


def read_text(path: str | PathLike[str]) -> str:
    """The text of a record; ``-`` is stdin. What is compressed is recognized by its content.

    Raises RecordError where it cannot be read, is no UTF-8 or is larger than any record.
    """
    try:
        raw = _read_stdin() if str(path) == STDIN else _read_file(Path(path))
        if raw.startswith(_GZIP_MAGIC):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as unpacked:
                raw = unpacked.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise RecordError(
            f"{_shown(path)} is damaged", why=f"it does not unpack: {error}", fix="copy the file again"
        ) from None
    except OSError as error:
        fix = "make it with `aotcli trace MODEL -o FILE`" if isinstance(error, FileNotFoundError) else "check the path"
        raise RecordError(f"{_shown(path)} cannot be read", why=error.strerror or str(error), fix=fix) from None
    if len(raw) > MOST_BYTES:
        raise RecordError(
            f"{_shown(path)} is too large",
            why=f"aotcli reads records up to {MOST_BYTES >> 20} MiB of text",
            fix="give a file that `aotcli trace MODEL -o FILE` wrote",
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{_shown(path)} is no record",
            why=f"it is no text: byte {error.start} is not UTF-8",
            fix="give a file that `aotcli trace MODEL -o FILE` wrote",
        ) from None


def _shown(path: str | PathLike[str]) -> str:
    return "stdin" if str(path) == STDIN else str(path)


def _read_stdin() -> bytes:
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def write_text(text: str, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a record; ``.gz`` compresses it, to the same bytes each time.

    The file is complete or not there at all. Raises OutputError where the path holds a file that aotcli did not write
    (unless `force`), or cannot be written.
    """
    target = Path(path)
    data = text.encode("utf-8", "replace")
    if target.suffix == ".gz":
        data = _compressed(data)
    try:
        _check_target(target, force=force)
        write_atomically(target, data)
    except OSError as error:
        fix = f"make the folder {target.parent}" if isinstance(error, FileNotFoundError) else "choose another path"
        raise OutputError(f"{target} cannot be written", why=error.strerror or str(error), fix=fix) from None


def _compressed(data: bytes) -> bytes:
    """gzip without a time stamp or a file name."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as packed:
        packed.write(data)
    return buffer.getvalue()


def _check_target(target: Path, *, force: bool) -> None:
    if target.is_dir():
        fix = f"give a file, such as {target / 'model.aot.json'}"
        raise OutputError(f"{target} is a folder", why="a file is to be written there", fix=fix)
    if force or not target.is_file() or is_ours(target):
        return
    raise OutputError(
        f"{target} exists and was not written by aotcli",
        why="aotcli replaces only its own files",
        fix="choose another path, or give --force",
    )


def is_ours(path: Path) -> bool:
    """Whether aotcli wrote this file, or nobody wrote anything into it."""
    raw = path.read_bytes() if path.stat().st_size < _SIGNATURE_BYTES else _head(path)
    return not raw or '"schema": "aotcli.' in raw.decode("utf-8", "replace")


def _head(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        if not packed:
            return file.read(_SIGNATURE_BYTES)
        with contextlib.suppress(gzip.BadGzipFile, EOFError, zlib.error), gzip.GzipFile(fileobj=file) as unpacked:
            return unpacked.read(_SIGNATURE_BYTES)
    return b"?"


def write_atomically(target: Path, data: bytes) -> None:
    """Replace `target` by `data` in one step; on any error it stays as it was. Raises OSError.

    What is no regular file (a pipe, a terminal, /dev/null) is written to, not replaced. A link stays a link.
    """
    target = Path(os.path.realpath(target))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(data)
        return
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        # Not tempfile: its mode would hide the file from others, whatever the umask says.
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
