"""Pictures of the report for the README: `python tests/report_pictures.py RECORD FOLDER`, part of `make pictures`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser import browser_path
from playwright.sync_api import sync_playwright

from aotcli import api

SIZE = {"width": 1360, "height": 940}


def main(record: str, folder: str) -> None:
    found = api.report(api.load(record), command="aotcli report sample_models/gpt.py -o gpt.html")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        page_path = Path(scratch) / "gpt.html"
        page_path.write_text(found.html(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.goto(page_path.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            page.evaluate("() => window.aotcli.graph.fit(true)")
            page.locator("#panel-saved tbody tr").nth(1).click()
            page.mouse.move(5, 5)
            page.screenshot(path=Path(folder) / f"report-{theme}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
