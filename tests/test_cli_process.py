"""The command line as a process: exit codes, pipes, signals, colours, imports, and a torch that is not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import layered, sample_trace

from aotcli import api

ROOT = Path(__file__).parents[1]
MLP = ROOT / "sample_models" / "mlp.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("process")
    api.save(sample_trace(layered(30), breaks=()), folder / "net.aot.json")
    return folder


def environment(folder: Path, **changes: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "CI", "TERM")}
    return {**kept, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT), **changes}


def aotcli(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aotcli", *arguments],
        cwd=folder,
        env=environment(folder, **changes),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


class TestExitCodes:
    def test_ok(self, folder: Path) -> None:
        result = aotcli(folder, "partition", "net.aot.json")
        assert (result.returncode, result.stderr) == (0, "")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("partition", "absent.py"),
            ("partition", "absent.aot.json"),
            ("partition", "net.aot.json", "--strategy", "nonsense"),
            ("partition", "net.aot.json", "--nonsense"),
            ("nonsense",),
            ("trace",),
        ],
        ids=" ".join,
    )
    def test_usage_and_input(self, folder: Path, arguments: tuple[str, ...]) -> None:
        result = aotcli(folder, *arguments)
        assert result.returncode == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert result.stderr

    def test_an_error_says_what_why_and_fix(self, folder: Path) -> None:
        lines = aotcli(folder, "partition", "net.aot.json", "--strategy", "mincutt").stderr.splitlines()
        assert lines[0] == "error: there is no strategy 'mincutt'"
        assert lines[1].startswith("  why: known are ")
        assert lines[2] == "  fix: did you mean 'mincut'?"

    def test_a_traceback_only_with_debug(self, folder: Path) -> None:
        result = aotcli(folder, "partition", "absent.aot.json", "--debug")
        assert result.returncode == 2
        assert "Traceback (most recent call last)" in result.stderr
        assert result.stderr.rstrip().splitlines()[-2].startswith("error: ") or "error: " in result.stderr

    def test_a_fault_of_our_own(self, folder: Path) -> None:
        code = (
            "import sys; from aotcli import api\n"
            "def fail(path): raise RuntimeError('broken')\n"
            "api.load = fail\n"
            "from aotcli.cli.main import run\n"
            "sys.exit(run(['show', 'net.aot.json']))"
        )
        result = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 3
        assert result.stderr.startswith("error: aotcli itself failed: RuntimeError: broken\n")
        assert "Traceback" not in result.stderr

    def test_ctrl_c(self, folder: Path) -> None:
        (folder / "slow.py").write_text(
            "import time\nfrom pathlib import Path\nPath('started').touch()\ntime.sleep(60)\nmodel = inputs = None\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "aotcli", "trace", "slow.py"],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 300  # importing torch on a busy machine
        while not (folder / "started").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (folder / "started").exists()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (130, "")
        assert "Traceback" not in err


class TestPipes:
    def test_a_closed_pipe_is_silent(self, folder: Path) -> None:
        command = f"{sys.executable} -m aotcli show net.aot.json --graph joint | head -1; echo ${{PIPESTATUS[0]}}"
        for _ in range(3):
            result = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
            )
            assert result.stdout.splitlines() == ["  def joint_region0(", "0"]
            assert result.stderr == ""

    def test_standard_output_that_is_closed_from_the_start(self, folder: Path) -> None:
        command = f"{sys.executable} -m aotcli show net.aot.json >&-"
        result = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )
        assert result.returncode == 2
        assert result.stderr.startswith("error: standard output is closed\n")

    def test_a_full_disk(self, folder: Path) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("needs /dev/full")
        command = f"{sys.executable} -m aotcli show net.aot.json > /dev/full"
        result = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
        )
        assert result.returncode == 2
        assert result.stderr.startswith("error: standard output cannot be written")
        assert "Traceback" not in result.stderr

    def test_piped_text_has_80_columns_and_no_color(self, folder: Path) -> None:
        text = aotcli(folder, "partition", "net.aot.json").stdout
        assert max(len(line) for line in text.splitlines() if not line.startswith("    ")) <= 80
        assert "\x1b" not in text

    def test_columns(self, folder: Path) -> None:
        assert "dtype" in aotcli(folder, "partition", "net.aot.json", COLUMNS="200").stdout
        assert "dtype" not in aotcli(folder, "partition", "net.aot.json", COLUMNS="nonsense").stdout

    def test_an_encoding_that_has_no_signs(self, folder: Path) -> None:
        text = aotcli(folder, "partition", "net.aot.json", PYTHONIOENCODING="ascii").stdout
        text.encode("ascii")
        assert ">= " in text

    def test_an_error_in_such_an_encoding(self, folder: Path) -> None:
        result = aotcli(folder, "partition", "größe.aot.json", PYTHONIOENCODING="ascii")
        assert result.returncode == 2
        assert "Traceback" not in result.stderr


class TestTerminal:
    """A pseudo-terminal: colour and width are the terminal's."""

    def run(self, folder: Path, *arguments: str, **changes: str) -> str:
        import pty

        script = "import sys; from aotcli.cli.main import main; sys.argv = ['aotcli', *sys.argv[1:]]; main()"
        pid, handle = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execve(
                sys.executable,
                [sys.executable, "-c", script, *arguments],
                environment(folder, **{"TERM": "xterm-256color", **changes}),
            )
        chunks: list[bytes] = []
        while True:
            try:
                chunk = os.read(handle, 65536)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
        # Closed last: to a program that still writes, a terminal that goes away is a signal to end.
        _, status = os.waitpid(pid, 0)
        os.close(handle)
        assert os.waitstatus_to_exitcode(status) == 0, (status, b"".join(chunks)[-2000:])
        return b"".join(chunks).decode()

    def test_color(self, folder: Path) -> None:
        assert "\x1b[1m" in self.run(folder, "partition", "net.aot.json")
        assert "\x1b" not in self.run(folder, "partition", "net.aot.json", NO_COLOR="1")
        assert "\x1b[1m" in self.run(folder, "partition", "net.aot.json", "--color", "always", NO_COLOR="1")
        assert "\x1b" not in self.run(folder, "partition", "net.aot.json", "--color", "never")
        assert "\x1b" not in self.run(folder, "partition", "net.aot.json", TERM="dumb")

    def test_progress(self, folder: Path) -> None:
        (folder / "brackets[x].py").write_text(
            "import time, torch\ntime.sleep(1.5)\nmodel = torch.nn.Linear(4, 4)\ninputs = (torch.ones(2, 4),)\n"
        )
        text = self.run(folder, "trace", "brackets[x].py", "--no-cache")
        assert "building brackets[x] on fake tensors" in text
        assert "Joint graph" in text
        assert "building" not in self.run(folder, "trace", "brackets[x].py", "--no-cache", "-q")


class TestTorch:
    """What works without torch, and what is said where it is needed."""

    def without(self, folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run with a package `torch` of our making in front of the real one."""
        shadow = folder / f"shadow-{abs(hash(module))}"
        (shadow / "torch").mkdir(parents=True, exist_ok=True)
        (shadow / "torch" / "__init__.py").write_text(module)
        return aotcli(folder, *arguments, PYTHONPATH=f"{shadow}{os.pathsep}{ROOT}")

    MISSING = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    BROKEN = "raise OSError('libc10.so: cannot open shared object file')"

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--help",),
            ("--version",),
            ("partition", "--help"),
            ("strategies",),
            ("show", "net.aot.json"),
            ("show", "net.aot.json", "--graph", "backward"),
            ("partition", "net.aot.json"),
            ("partition", "net.aot.json", "-s", "save-all", "-s", "recompute-all"),
            ("partition", "net.aot.json", "--format", "json"),
            ("explain", "net.aot.json", "--recompute", "h.*.fc"),
            ("check", "--help"),
            ("accept", "--help"),
            ("lint", "net.aot.json", "--select", "AOT003"),
            ("lint", "--list-rules"),
            ("cache", "info"),
            ("--show-completion", "bash"),
        ],
        ids=" ".join,
    )
    def test_these_work_without_torch(self, folder: Path, arguments: tuple[str, ...]) -> None:
        result = self.without(folder, "raise SystemExit('torch was imported')", *arguments)
        assert result.returncode == 0, result.stderr
        assert result.stdout

    @pytest.mark.parametrize("module", [MISSING, BROKEN], ids=["missing", "broken"])
    def test_capturing_without_torch(self, folder: Path, module: str) -> None:
        result = self.without(folder, module, "trace", str(MLP), "--no-cache")
        assert result.returncode == 3
        assert result.stderr.startswith("error: torch is not installed, or does not import\n")
        assert 'fix: python -m pip install "torch>=2.11,<2.16"' in result.stderr

    @pytest.mark.parametrize("version", ["2.10.1", "2.16.0", "1.13.1", "3.0.0a0+git"])
    def test_another_torch(self, folder: Path, version: str) -> None:
        result = self.without(folder, f"__version__ = {version!r}", "partition", str(MLP), "--no-cache")
        assert result.returncode == 3
        assert result.stderr.startswith(f"error: torch {version} is not supported\n")
        assert "2.11 to 2.15" in result.stderr
        assert "fix: python -m pip install" in result.stderr

    def test_doctor_without_torch(self, folder: Path) -> None:
        result = self.without(folder, self.MISSING, "doctor")
        assert result.returncode == 3
        assert "missing" in result.stdout
        assert 'python -m pip install "torch>=2.11,<2.16"' in result.stdout
        assert "networkx" in result.stdout

    def test_doctor_with_another_torch(self, folder: Path) -> None:
        module = "__version__ = '2.10.0'\nclass cuda:\n    is_available = staticmethod(lambda: False)\n"
        module += "class version:\n    cuda = hip = None\n"
        result = self.without(folder, module, "doctor")
        assert result.returncode == 3
        assert "2.10.0" in result.stdout
        assert "not supported" in result.stdout


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2.11.0", True),
        ("2.13.0+cpu", True),
        ("2.15.2", True),
        ("2.16.0", False),
        ("2.10.9", False),
        ("nonsense", False),
    ],
)
def test_supported_versions(version: str, supported: bool) -> None:
    from aotcli.capture.environment import is_supported

    assert is_supported(version) is supported
