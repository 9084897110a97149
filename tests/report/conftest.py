"""Pages of reports, open in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Opened, open_browser
from report_pages import gpt_like

from aotcli import api
from aotcli.ir.trace import Trace


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as found:
        yield found


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the report of a trace; at the end of the test, that nothing went wrong."""
    opened: list[Opened] = []

    def run(
        trace: Trace | None = None, *, address: str = "", dark: bool = False, width: int = 1440, **options: Any
    ) -> Opened:
        path = tmp_path / f"report{len(opened)}.html"
        path.write_text(api.report(trace or gpt_like(), **options).html(), encoding="utf-8")
        opened.append(Opened(browser, path, address=address, dark=dark, width=width))
        return opened[-1]

    yield run
    for each in opened:
        each.close()
