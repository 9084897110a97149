"""Workflow commands of GitHub Actions: annotations on the lines of a file, and text that holds none by accident.

A line that starts with ``::`` is a command to the runner. So what a message or a path holds is escaped as the runner's
own toolkit does it: ``%`` and line ends, in properties ``:`` and ``,`` too. The runner shows ten annotations of a kind
for a step and drops the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from aotcli.render.page import plain

MOST_ANNOTATIONS = 10
_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)

Locate = Callable[[str], tuple[str, int] | None]
"""From ``file:line`` of a record to the file in the repository and the line; None where it is not the repository's."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message on a line (or on a file, or on the step). `level` is error, warning or notice."""

    level: str
    title: str
    message: str
    place: tuple[str, int | None] | None


def annotation_line(each: Annotation) -> str:
    """The command that makes an annotation."""
    properties: list[str] = []
    if each.place is not None:
        file, line = each.place
        properties.append(f"file={_property(file)}")
        if line is not None:
            properties.append(f"line={line}")
    properties.append(f"title={_property(each.title)}")
    return f"::{each.level} {','.join(properties)}::{_data(each.message)}"


def _data(text: str) -> str:
    return plain(text.replace("##[", "## [").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def defuse(report: str) -> str:
    """`report` with no line that the runner would take for a command, and nothing in its older form anywhere."""
    return _COMMAND.sub(r"\1| \2", report.replace("##[", "## ["))
