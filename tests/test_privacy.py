"""A record says nothing about who made it or where, is the same whoever makes it, and nothing is sent anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODELS = {
    "gpt": [
        "sample_models/gpt.py",
        *["--set", "layers=2", "--set", "width=128", "--set", "batch=2", "--set", "seq=64", "--set", "vocab=1000"],
    ],
    "dynamic_shapes": ["sample_models/dynamic_shapes.py"],
    "dynamic_mlp": ["sample_models/mlp.py", "--dynamic", "--level", "aten"],
    "graph_break": ["sample_models/graph_break.py"],
}

# Runs in every process that the tests start, before anything else: gives it a host name to leak, and writes down each
# socket that is opened.
SITECUSTOMIZE = """
import os, platform, socket, sys

def watch(event, arguments):
    if event in ("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        with open(os.environ["SOCKET_LOG"], "a") as log:
            log.write(f"{event} {arguments[1:]}\\n")

sys.addaudithook(watch)
socket.gethostname = socket.getfqdn = platform.node = lambda *_: "host-of-somebody"
"""

# Runs one command line after another, so that several models are traced in one process.
RUN_ALL = """
import json, sys
from aotcli.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["aotcli", *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, None), (arguments, end.code)
"""


class Somebody:
    """An environment with a home, a user, a host, a hash seed and a cache folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.home = folder / "home-of-somebody"
        self.log = folder / "sockets"
        site = folder / "site"
        for each in (self.home, site):
            each.mkdir(parents=True)
        (site / "sitecustomize.py").write_text(SITECUSTOMIZE)
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "USER": "name-of-somebody",
            "LOGNAME": "name-of-somebody",
            "PYTHONHASHSEED": str(seed),
            "PYTHONPATH": str(site),
            "SOCKET_LOG": str(self.log),
        }

    def run(self, *commands: list[str], cwd: Path = ROOT) -> str:
        result = subprocess.run(
            [sys.executable, "-c", RUN_ALL, json.dumps(commands)],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
        return result.stdout

    def sockets(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Somebody:
    return traced(tmp_path_factory.mktemp("first"), 1, list(MODELS))


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Somebody:
    return traced(tmp_path_factory.mktemp("second"), 2, list(reversed(MODELS)))


def traced(folder: Path, seed: int, names: list[str]) -> Somebody:
    somebody = Somebody(folder, seed)
    somebody.run(*(["trace", *MODELS[name], "--no-cache", "-o", str(folder / f"{name}.aot.json")] for name in names))
    return somebody


@pytest.mark.parametrize("name", MODELS)
def test_two_processes_write_equal_bytes(name: str, first: Somebody, second: Somebody) -> None:
    one, other = (each.folder / f"{name}.aot.json" for each in (first, second))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_record_names_no_person_host_or_folder(name: str, first: Somebody) -> None:
    text = (first.folder / f"{name}.aot.json").read_text()
    own = [str(ROOT), str(Path.home()), str(Path(sys.prefix).resolve()), str(Path(torch_folder()).parent)]
    for secret in ("somebody", str(first.folder), *own):
        assert len(secret) < 4 or secret not in text, secret


def torch_folder() -> str:
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_model_outside_the_project_leaves_no_path(tmp_path: Path) -> None:
    somebody = Somebody(tmp_path / "work", 3)
    model = somebody.home / "secret-plans" / "model.py"
    model.parent.mkdir()
    model.write_text((ROOT / "sample_models" / "mlp.py").read_text())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    record = tmp_path / "model.aot.json"
    somebody.run(["trace", str(model), "--no-cache", "-o", str(record)], cwd=elsewhere)
    text = record.read_text()
    assert "somebody" not in text
    assert str(tmp_path) not in text
    assert "model.py:" in text


def test_anonymized_records_keep_no_name_of_the_model(tmp_path: Path) -> None:
    somebody = Somebody(tmp_path / "work", 4)
    record = tmp_path / "a.aot.json"
    somebody.run(["trace", *MODELS["gpt"], "--anonymize", "--no-cache", "-o", str(record)])
    text = record.read_text()
    for name in ("gpt", "GPT", "qkv", "ln1", "Block", "tokens"):
        assert name not in text, name


def test_no_command_opens_a_socket(first: Somebody) -> None:
    record = str(first.folder / "gpt.aot.json")
    first.run(
        ["--version"],
        ["strategies"],
        ["doctor"],
        ["show", record],
        ["partition", record, "--strategy", "mincut", "--strategy", "save-all"],
        ["partition", "sample_models/mlp.py", "--strategy", "mincut"],
        ["trace", "sample_models/mlp.py"],
        ["cache", "info"],
    )
    assert first.sockets() == ""


def test_the_watch_on_sockets_sees_one(tmp_path: Path) -> None:
    somebody = Somebody(tmp_path, 5)
    code = "import socket; socket.socket().close()"
    subprocess.run([sys.executable, "-c", code], env=somebody.environment, check=True)
    assert "socket.__new__" in somebody.sockets()
