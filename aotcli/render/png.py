"""An SVG picture as PNG, by resvg: a wheel from pip, no system library."""

from __future__ import annotations

import struct
import zlib
from importlib.util import find_spec
from pathlib import Path

from aotcli.errors import EnvironmentProblem

SCALE = 2.0
PNG_MARK = b"Software\0aotcli"
_HEADER_BYTES = 33  # the signature and the chunk IHDR


def render_png(svg: str, *, scale: float = SCALE) -> bytes:
    """The picture, `scale` pixels for one of the SVG's.

    Raises EnvironmentProblem where the wheel is missing.
    """
    require_png()
    import resvg_py

    return _marked(bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_files=_fonts())))


def _marked(png: bytes) -> bytes:
    """The PNG with a note, behind its first chunk, that aotcli wrote it: so it may be replaced."""
    kind, text = b"tEXt", PNG_MARK
    chunk = struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))
    return png[:_HEADER_BYTES] + chunk + png[_HEADER_BYTES:]


def _fonts() -> list[str]:
    """A font of the same extra, for machines without any."""
    try:
        import font_lato
    except ImportError:
        return []
    folder = Path(font_lato.__file__).parent / "files"
    return [str(folder / name) for name in ("Lato-Regular.ttf", "Lato-Bold.ttf") if (folder / name).is_file()]


def require_png() -> None:
    """Raises EnvironmentProblem where the package that writes PNG is missing."""
    if find_spec("resvg_py") is None:
        raise EnvironmentProblem(
            "PNG needs the package resvg-py",
            why="aotcli itself writes SVG and DOT only",
            fix="pip install 'aotcli[png]', or --format svg",
        )
