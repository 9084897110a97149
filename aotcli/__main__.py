"""``python -m aotcli``."""

from __future__ import annotations

from aotcli.cli.main import main

if __name__ == "__main__":
    main()
