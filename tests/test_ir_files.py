from __future__ import annotations

import dataclasses
import gzip
import io
import os
import stat
import sys
from pathlib import Path

import pytest
from builders import layered, sample_trace, two_matmuls

from aotcli.errors import OutputError, RecordError, VerificationError
from aotcli.ir import files
from aotcli.ir.document import MOST_BYTES
from aotcli.ir.joint import Ref
from aotcli.ir.serial import dump_trace, read_plan, read_trace, write_trace

TRACE = sample_trace()
# Root may write anywhere.
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root ignores permissions")


def listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("name", ["net.aot.json", "net.aot.json.gz", "größe.json"])
def test_a_written_trace_is_read_back(tmp_path, name):
    write_trace(TRACE, tmp_path / name)
    assert read_trace(tmp_path / name) == TRACE
    assert read_trace(str(tmp_path / name)) == TRACE
    assert listed(tmp_path) == [name]


def test_compressed_files_are_the_same_each_time_and_name_nobody(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_trace(TRACE, tmp_path / name)
    packed = (tmp_path / "a.gz").read_bytes()
    assert packed == (tmp_path / "b.gz").read_bytes()
    assert packed[3] == 0  # no file name in the header
    assert packed[4:8] == bytes(4)  # no time stamp
    assert gzip.decompress(packed).decode() == dump_trace(TRACE)


def test_compression_is_recognized_by_content(tmp_path):
    (tmp_path / "plain-name").write_bytes(gzip.compress(dump_trace(TRACE).encode()))
    assert read_trace(tmp_path / "plain-name") == TRACE


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_comes_from_stdin(monkeypatch, packed):
    raw = dump_trace(TRACE).encode()
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(raw) if packed else raw))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_trace("-") == TRACE


def test_source_text_follows_the_settings(tmp_path):
    nodes = tuple(dataclasses.replace(node, code="secret()") for node in TRACE.regions[0].nodes)
    graph = dataclasses.replace(TRACE.regions[0], nodes=nodes)
    with_source = dataclasses.replace(TRACE.settings, with_source=True)
    write_trace(dataclasses.replace(TRACE, regions=(graph,)), tmp_path / "without.aot.json")
    write_trace(dataclasses.replace(TRACE, regions=(graph,), settings=with_source), tmp_path / "with.aot.json")
    assert "secret()" not in (tmp_path / "without.aot.json").read_text()
    assert "secret()" in (tmp_path / "with.aot.json").read_text()


# Reading what is not there or no record.


def test_no_such_file(tmp_path):
    with pytest.raises(RecordError) as caught:
        read_trace(tmp_path / "gone.aot.json")
    assert "gone.aot.json cannot be read" in str(caught.value)
    assert "aotcli trace" in caught.value.fix


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00{}", "no text"),
        (gzip.compress(dump_trace(TRACE).encode())[:200], "does not unpack"),
        (b"\x1f\x8b" + b"junk" * 20, "does not unpack"),
        (gzip.compress(b"x" * (MOST_BYTES + 1)), "too large"),
        (b"x" * (MOST_BYTES + 1), "too large"),
        (b"PK\x03\x04 a zip", "no JSON"),
    ],
)
def test_files_that_are_no_records(tmp_path, content, message):
    (tmp_path / "x.aot.json").write_bytes(content)
    with pytest.raises(RecordError, match=message):
        read_trace(tmp_path / "x.aot.json")
    with pytest.raises(RecordError, match=message):
        read_plan(tmp_path / "x.aot.json")


def test_a_flipped_byte_in_a_compressed_file_is_noticed(tmp_path):
    packed = bytearray(gzip.compress(dump_trace(TRACE).encode()))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "x.gz").write_bytes(packed)
    with pytest.raises(RecordError):
        read_trace(tmp_path / "x.gz")


def test_a_folder_is_no_record(tmp_path):
    with pytest.raises(RecordError, match="cannot be read"):
        read_trace(tmp_path)


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(RecordError, match="too large"):
        read_trace("/dev/zero")


# Writing.


def test_own_files_are_replaced(tmp_path):
    for name in ("x.aot.json", "x.aot.json.gz"):
        write_trace(TRACE, tmp_path / name)
        other = sample_trace(layered(2))
        write_trace(other, tmp_path / name)
        assert read_trace(tmp_path / name) == other


FOREIGN = [b"notes", b"{}", b'{"schema": "mine"}', gzip.compress(b"notes"), b"\x1f\x8bxx", b"x" * 999]


@pytest.mark.parametrize("content", FOREIGN, ids=["text", "object", "other", "packed", "damaged", "long"])
@pytest.mark.parametrize("name", ["x.aot.json", "x.aot.json.gz"])
def test_other_peoples_files_are_not_replaced_without_force(tmp_path, content, name):
    target = tmp_path / name
    target.write_bytes(content)
    with pytest.raises(OutputError) as caught:
        write_trace(TRACE, target)
    assert "--force" in caught.value.fix
    assert caught.value.exit_code == 2
    assert target.read_bytes() == content
    write_trace(TRACE, target, force=True)
    assert read_trace(target) == TRACE


def test_an_empty_file_may_be_filled(tmp_path):
    (tmp_path / "x.aot.json").touch()
    write_trace(TRACE, tmp_path / "x.aot.json")
    assert read_trace(tmp_path / "x.aot.json") == TRACE


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(OutputError, match="is a folder"):
        write_trace(TRACE, tmp_path, force=True)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError) as caught:
        write_trace(TRACE, tmp_path / "no" / "x.aot.json")
    assert f"make the folder {tmp_path / 'no'}" in caught.value.fix
    assert listed(tmp_path) == []


@needs_permissions
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        write_trace(TRACE, tmp_path / "x.aot.json")


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        write_trace(TRACE, tmp_path / "file" / "x.aot.json")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_on_the_way_leaves_the_old_file_and_no_half_one(tmp_path, monkeypatch, step):
    target = tmp_path / "x.aot.json"
    write_trace(TRACE, target)
    before = target.read_bytes()

    def fails(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    if step == "fsync":
        monkeypatch.setattr(files.os, "fsync", fails)
    else:
        monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OutputError, match="No space left"):
        write_trace(sample_trace(layered(2)), target)
    assert target.read_bytes() == before
    assert listed(tmp_path) == ["x.aot.json"]


def test_a_graph_that_cannot_be_written_leaves_no_file(tmp_path):
    graph = two_matmuls()
    bad = dataclasses.replace(graph.nodes[5], args=(Ref("gone"),))
    graph = dataclasses.replace(graph, nodes=(*graph.nodes[:5], bad, *graph.nodes[6:]))
    with pytest.raises(VerificationError, match="gone"):
        write_trace(sample_trace(graph), tmp_path / "x.aot.json")
    assert listed(tmp_path) == []


def test_a_link_stays_a_link(tmp_path):
    write_trace(TRACE, tmp_path / "real.aot.json")
    (tmp_path / "link.aot.json").symlink_to("real.aot.json")
    other = sample_trace(layered(2))
    write_trace(other, tmp_path / "link.aot.json")
    assert (tmp_path / "link.aot.json").is_symlink()
    assert read_trace(tmp_path / "real.aot.json") == other


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_trace(TRACE, pipe)
        assert os.read(reader, 1 << 20).decode() == dump_trace(TRACE)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_mode_follows_the_umask_and_then_the_old_file(tmp_path):
    target = tmp_path / "x.aot.json"
    old = os.umask(0o027)
    try:
        write_trace(TRACE, target)
    finally:
        os.umask(old)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o604)
    write_trace(TRACE, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
