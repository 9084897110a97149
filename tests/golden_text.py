"""Text held against a file of tests/golden.

AOTCLI_UPDATE_GOLDEN=1 writes the files anew; read the diff before a commit.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Fails where `text` is not what tests/golden/`name` holds."""
    path = FOLDER / name
    if os.environ.get("AOTCLI_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path} is missing; AOTCLI_UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8")
