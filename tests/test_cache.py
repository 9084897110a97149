"""The capture cache: what makes an entry stale, and that no state of the disk is an error."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from aotcli.capture import cache
from aotcli.capture.workload import Workload, load_workload
from aotcli.ir.trace import CaptureSettings, Environment, ModelInfo, Trace

SETTINGS = CaptureSettings()
TRACE = Trace(ModelInfo("net", "net.py"), Environment("2.13.0", "cpu"), SETTINGS, regions=())


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTCLI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "own_modules", dict)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("pyproject.toml").touch()
    write("net.py", "model = 1")


def write(name: str, text: str) -> None:
    """Write a file that is older than any workload named after it."""
    Path(name).write_text(text)
    os.utime(name, (1, 1))


def workload(settings: CaptureSettings = SETTINGS) -> Workload:
    return load_workload("net.py", settings)


def test_an_entry_is_found_again() -> None:
    assert cache.find_capture(workload(), SETTINGS) is None
    assert cache.store_capture(workload(), SETTINGS, TRACE)
    assert cache.find_capture(workload(), SETTINGS) == TRACE
    entries, nbytes = cache.cache_size()
    assert (entries, nbytes > 0) == (1, True)


@pytest.mark.parametrize(
    "other", [{"level": "aten"}, {"seed": 1}, {"overrides": (("layers", "2"),)}, {"train": True}, {"device": "cuda"}]
)
def test_other_settings_are_another_entry(other: dict[str, object]) -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    assert cache.find_capture(workload(), replace(SETTINGS, **other)) is None  # type: ignore[arg-type]


def test_a_changed_file_makes_it_stale_and_the_old_content_good_again() -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    write("net.py", "model = 2")
    assert cache.find_capture(workload(), SETTINGS) is None
    write("net.py", "model = 1")
    assert cache.find_capture(workload(), SETTINGS) == TRACE
    Path("net.py").touch()  # another time, the same content
    assert cache.find_capture(workload(), SETTINGS) == TRACE


def test_a_changed_import_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    write("layers.py", "a = 1")
    monkeypatch.setattr(cache, "own_modules", lambda: {"layers": Path("layers.py").resolve()})
    cache.store_capture(workload(), SETTINGS, TRACE)
    monkeypatch.setattr(cache, "own_modules", dict)  # nothing is imported in the process that looks it up
    assert cache.find_capture(workload(), SETTINGS) == TRACE
    write("layers.py", "a = 2")
    assert cache.find_capture(workload(), SETTINGS) is None
    Path("layers.py").unlink()
    assert cache.find_capture(workload(), SETTINGS) is None


def test_another_version_of_a_loaded_package_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache._installed_packages()["pytest"] == pytest.__version__
    cache.store_capture(workload(), SETTINGS, TRACE)
    installed = {**cache._installed_packages(), "pytest": "0.0"}
    monkeypatch.setattr(cache, "_installed_packages", lambda: installed)
    assert cache.find_capture(workload(), SETTINGS) is None


def test_the_compilers_environment_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")  # torch sets this one itself
    assert cache.find_capture(workload(), SETTINGS) == TRACE
    monkeypatch.setenv("TORCHINDUCTOR_LAYOUT_OPTIMIZATION", "0")
    assert cache.find_capture(workload(), SETTINGS) is None


def test_other_sources_of_aotcli_are_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    monkeypatch.setattr(cache, "_own_sources", lambda: "another")
    assert cache.find_capture(workload(), SETTINGS) is None


def test_a_file_edited_during_the_capture_is_not_kept() -> None:
    early = replace(workload(), loaded_at=0.0)
    assert not cache.store_capture(early, SETTINGS, TRACE)
    assert cache.cache_size() == (0, 0)


def entry() -> Path:
    (path,) = (cache.cache_folder() / "captures").iterdir()
    return path


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"{}\n{}"), gzip.compress(b"[]\n"), None],
    ids=["empty", "text", "two objects", "list", "none"],
)
def test_damaged_entries_are_none(content: bytes | None) -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    whole = entry().read_bytes()
    entry().write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert cache.find_capture(workload(), SETTINGS) is None
    assert cache.store_capture(workload(), SETTINGS, TRACE)
    assert cache.find_capture(workload(), SETTINGS) == TRACE


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").touch()
    monkeypatch.setenv("AOTCLI_CACHE_DIR", str(Path("file") / "below"))
    assert not cache.store_capture(workload(), SETTINGS, TRACE)
    assert cache.find_capture(workload(), SETTINGS) is None
    assert (cache.cache_size(), cache.clear_cache()) == ((0, 0), (0, 0))


def test_clearing_deletes_captures_only() -> None:
    cache.store_capture(workload(), SETTINGS, TRACE)
    other = cache.cache_folder() / "last" / "x.json"
    other.parent.mkdir()
    other.touch()
    size = cache.cache_size()
    assert cache.clear_cache() == size
    assert cache.cache_size() == (0, 0)
    assert other.exists()


def test_the_oldest_entries_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_ENTRIES", 3)
    for seed in range(5):
        cache.store_capture(workload(), replace(SETTINGS, seed=seed), TRACE)
        os.utime(max((cache.cache_folder() / "captures").iterdir(), key=os.path.getmtime), (seed, seed))
    kept = [seed for seed in range(5) if cache.find_capture(workload(), replace(SETTINGS, seed=seed))]
    assert len(kept) == 3
    assert 4 in kept


def test_many_writers_leave_one_whole_entry() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: cache.store_capture(workload(), SETTINGS, TRACE), range(24)))
    assert cache.find_capture(workload(), SETTINGS) == TRACE
    assert cache.cache_size()[0] == 1


def test_where_captures_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("AOTCLI_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "aotcli"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() in (tmp_path / ".cache" / "aotcli", tmp_path / "Library/Caches/aotcli")


def test_a_lookup_in_a_fresh_process_imports_neither_torch_nor_the_model() -> None:
    write("net.py", "raise SystemExit('imported')")
    cache.store_capture(workload(), SETTINGS, TRACE)
    code = (
        "import sys; from aotcli.capture import cache; from aotcli.capture.workload import load_workload\n"
        "from aotcli.ir.trace import CaptureSettings\n"
        "found = cache.find_capture(load_workload('net.py', CaptureSettings()), CaptureSettings())\n"
        "print(found.model.name, 'torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "net False\n"
