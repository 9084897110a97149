"""A Typer application that does nothing: the floor for what `--help` can cost."""

from __future__ import annotations

import typer

app = typer.Typer()


@app.command()
def nothing() -> None:
    """Do nothing."""


if __name__ == "__main__":
    app()
