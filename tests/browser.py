"""A real browser for tests of pages: the system's Chromium, driven by Playwright.

Where none is installed, the tests are skipped and say so. `.ci/run` installs one and sets AOTCLI_BROWSER to its path:
then there is no skipping.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCREENSHOTS = ROOT / "build" / "report-pages"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str:
    """The browser's executable. Skips the test where there is none, unless AOTCLI_BROWSER demands one."""
    wanted = os.environ.get("AOTCLI_BROWSER")
    if wanted:
        assert Path(wanted).is_file(), f"AOTCLI_BROWSER: there is no {wanted}"
        return wanted
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium: apt-get install chromium, or set AOTCLI_BROWSER to one")
    return found


@contextmanager
def open_browser() -> Iterator[Any]:
    """A running browser."""
    path = browser_path()
    if os.environ.get("AOTCLI_BROWSER") is None:
        pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that is open, and everything that it should not have done: errors, console messages, requests, dialogs."""

    def __init__(
        self, browser: Any, path: Path, *, address: str = "", width: int = 1440, height: int = 900, dark: bool = False
    ) -> None:
        scheme = "dark" if dark else "light"
        self.page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._requested)
        self._own = path.as_uri()
        self.page.goto(self._own + address)
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def _dismiss(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if request.url.partition("#")[0] != self._own:
            self.problems.append(f"request: {request.url}")

    def run(self, script: str, argument: Any = None) -> Any:
        """What a script of the page gives; `aotcli` is the page's handle for consoles."""
        return self.page.evaluate(script, argument)

    def settle(self) -> None:
        """Wait until what was asked for before the next frame is painted."""
        self.run("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def screenshot(self, name: str, *, full: bool = False) -> Path:
        """Keep a picture of the page in build/report-pages."""
        self.settle()
        path = SCREENSHOTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=full)
        return path

    def close(self) -> None:
        self.page.close()
        assert not self.problems, "\n".join(self.problems)
