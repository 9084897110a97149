"""Every error of bad input says what to do: read off the syntax trees of the package."""

from __future__ import annotations

import ast
from pathlib import Path

import aotcli
from aotcli import errors
from aotcli.errors import AotcliError, EnvironmentProblem, InputError

PACKAGE = Path(aotcli.__file__).parent
NAMES = frozenset(
    name
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, (InputError, EnvironmentProblem))
)


def made(path: Path) -> list[ast.Call]:
    """The places of a file where such an error is made with words of its own."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in NAMES and call.args]


def test_every_error_of_bad_input_has_a_fix() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): made(path) for path in sorted(PACKAGE.rglob("*.py"))}
    assert sum(map(len, found.values())) > 100, "the search finds nothing: its names are wrong"
    without = [
        f"{path}:{call.lineno}"
        for path, calls in found.items()
        for call in calls
        if not any(keyword.arg in ("fix", None) for keyword in call.keywords)
    ]
    assert not without


def test_an_error_prints_its_three_parts() -> None:
    error = AotcliError("it broke", why="it was old", fix="buy a new one")
    assert str(error) == "it broke\nwhy: it was old\nfix: buy a new one"
    assert str(AotcliError("it broke")) == "it broke"
