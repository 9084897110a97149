"""Command lines that cannot be parsed: what, why and fix, exit code 2, nothing on standard output."""

from __future__ import annotations

import pytest

from aotcli.cli.main import run


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What is said, line by line, without the labels."""
    assert run(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    what, why, fix = err.splitlines()
    assert (what[:7], why[:7], fix[:7]) == ("error: ", "  why: ", "  fix: ")
    return [line[7:] for line in (what, why, fix)]


@pytest.mark.parametrize(
    ("arguments", "what", "why", "fix"),
    [
        (
            ("trace", "m.py", "--set", "a=1", "b=2", "c=two words"),
            "aotcli trace: b=2 c=two words stand alone",
            "--set takes one value; what follows it is taken for an argument",
            "repeat it: --set b=2 --set 'c=two words'",
        ),
        (
            ("partition", "m.py", "--opt", "x=1", "y=2", "--quiet"),
            "aotcli partition: y=2 stands alone",
            "--opt takes one value; what follows it is taken for an argument",
            "repeat it: --opt y=2",
        ),
        (
            ("partition", "a.py", "b.py"),
            "aotcli partition: b.py is too many",
            "usage: aotcli partition [OPTIONS] [MODEL|RECORD]",
            "aotcli partition --help shows what it takes",
        ),
        (
            ("partition", "--stratgy", "mincut"),
            "aotcli partition has no option --stratgy",
            "usage: aotcli partition [OPTIONS] [MODEL|RECORD]",
            "did you mean --strategy?",
        ),
        (
            ("--wrong",),
            "aotcli has no option --wrong",
            "usage: aotcli [OPTIONS] COMMAND [ARGS]...",
            "aotcli --help shows what it takes",
        ),
        (
            ("trace", "--set"),
            "aotcli trace: option '--set' requires an argument",
            "the line ends there",
            "aotcli trace --help shows what it takes",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_and_how_to_write_it(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], what: str, why: str, fix: str
) -> None:
    assert failure(capsys, *arguments) == [what, why, fix]


def test_a_value_that_does_not_parse_names_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    what, why, _ = failure(capsys, "partition", "m.py", "--limit", "many")
    assert what == "aotcli partition: invalid value for '--limit'"
    assert "integer" in why


@pytest.mark.parametrize(("word", "fix"), [("partitoin", "did you mean partition?"), ("xyz", "aotcli --help lists")])
def test_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str], word: str, fix: str) -> None:
    what, why, said = failure(capsys, word)
    assert what == f"there is no command {word!r}"
    assert "trace" in why
    assert said.startswith(fix)


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert "Usage: aotcli [OPTIONS] COMMAND" in out + err
    assert "error:" not in err


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["partition", "a.py", "b.py", "--debug"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err
