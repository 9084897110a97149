"""An SVG picture as PNG, by resvg: a wheel from pip, no system library."""

from __future__ import annotations

from pathlib import Path

from aotcli.errors import EnvironmentProblem

SCALE = 2.0


def render_png(svg: str, *, scale: float = SCALE) -> bytes:
    """The picture, `scale` pixels for one of the SVG's.

    Raises EnvironmentProblem where the wheel is missing.
    """
    try:
        import resvg_py
    except ImportError as error:
        raise EnvironmentProblem(
            "PNG needs the package resvg-py",
            why="aotcli itself writes SVG and DOT only",
            fix="pip install 'aotcli[png]', or --format svg",
        ) from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_files=_fonts()))


def _fonts() -> list[str]:
    """A font of the same extra, for machines without any."""
    try:
        import font_lato
    except ImportError:
        return []
    folder = Path(font_lato.__file__).parent / "files"
    return [str(folder / name) for name in ("Lato-Regular.ttf", "Lato-Bold.ttf") if (folder / name).is_file()]
