"""The shape of the code: which part may import which, where torch may be, and how long things get."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "aotcli"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PRIVATE_TORCH = set((PACKAGE / "capture").glob("torch_private*.py"))
MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def dotted(node: ast.expr) -> str | None:
    """`torch._ops.OpOverload` of an attribute chain that starts at a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def torch_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every torch name that a module imports, or reaches through the name `torch`, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [dotted(node) or ""]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] in ("torch", "functorch"))


def is_private(name: str) -> bool:
    """Whether a torch name is one that torch does not promise to keep. Ops may start with an underscore."""
    parts = name.split(".")
    if parts[:2] == ["torch", "ops"]:
        return False
    return (
        parts[0] == "functorch"
        or any(part.startswith("_") and not part.startswith("__") for part in parts)
        or name.startswith("torch.fx.experimental")
    )


def test_private_torch_is_imported_at_one_seam() -> None:
    found = [
        f"{relative(path)}:{line}: {name}"
        for path in SOURCES
        if path not in PRIVATE_TORCH
        for line, name in torch_names(parsed(path))
        if is_private(name)
    ]
    assert not found, "\n".join(found)


def test_the_rule_on_private_torch_sees_what_it_should() -> None:
    text = "import torch\nfrom torch._functorch import partitioners\ndef f():\n    return torch._ops.OpOverload\n"
    text += "torch.ops.aten._softmax.default\nfrom torch.fx.experimental import symbolic_shapes\n"
    assert {line for line, name in torch_names(ast.parse(text)) if is_private(name)} == {2, 4, 6}


def test_imports_go_one_way() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    if not lint_imports.exists():
        pytest.skip("import-linter is not installed")
    result = subprocess.run([lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]


def test_files_and_functions_stay_short() -> None:
    long: list[str] = []
    for path in SOURCES:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_FILE_LINES:
            long.append(f"{relative(path)}: {lines} lines")
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # A command's signature is its list of options, and may be long.
                size = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
                if size > MOST_FUNCTION_LINES:
                    long.append(f"{relative(path)}:{node.lineno}: {node.name} has {size} lines")
    assert not long, "\n".join(long)


def modules_after(code: str) -> set[str]:
    """Top-level names of the modules that a fresh interpreter holds after `code`."""
    script = f"import sys\n{code}\nprint('MODULES', *sorted({{name.split('.')[0] for name in sys.modules}}))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "MODULES" in result.stdout, result.stdout + result.stderr
    return set(result.stdout.rpartition("MODULES")[2].split())


def run_command(*arguments: str) -> str:
    """Code that runs a command line in the interpreter that executes it."""
    return (
        f"sys.argv = ['aotcli', *{list(arguments)!r}]\n"
        "from aotcli.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (0, None), end.code\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("partition", "--help"), ("strategies",), ("--show-completion", "bash")],
    ids=" ".join,
)
def test_commands_that_need_no_torch_do_not_import_it(arguments: tuple[str, ...]) -> None:
    assert "torch" not in modules_after(run_command(*arguments))


@pytest.mark.parametrize("module", ["aotcli", "aotcli.api", "aotcli.cli.main", "aotcli.strategies"])
def test_importing_brings_no_torch(module: str) -> None:
    assert "torch" not in modules_after(f"import {module}")


def test_commands_on_a_record_do_not_import_torch(tmp_path: Path) -> None:
    record = tmp_path / "mlp.aot.json"
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys\n{run_command('trace', 'sample_models/mlp.py', '--no-cache', '-o', str(record))}",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    commands = (
        ("show", str(record)),
        ("partition", str(record), "--strategy", "mincut"),
        ("lint", str(record), "--select", "AOT003"),
        ("diff", str(record), f"{record}@recompute-all"),
    )
    for arguments in commands:
        assert "torch" not in modules_after(run_command(*arguments)), arguments
