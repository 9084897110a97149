"""An SVG picture as PNG, by resvg: a wheel from pip, no system library."""

from __future__ import annotations

import re
import struct
import zlib
from importlib.util import find_spec
from pathlib import Path

from aotcli.errors import EnvironmentProblem, InputError

SCALE = 2.0
PNG_MARK = b"Software\0aotcli"
_HEADER_BYTES = 33  # the signature and the chunk IHDR
_MOST_SIDE = 16_000.0
_MOST_PIXELS = 80e6
_LEAST_SCALE = 0.7
_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')


def render_png(svg: str, *, scale: float = SCALE) -> bytes:
    """The picture, `scale` pixels for one of the SVG's; fewer where it would be too large.

    Raises EnvironmentProblem where the wheel is missing, InputError for a picture that no PNG can show readably.
    """
    require_png()
    import resvg_py

    scale = _fitting(svg, scale)
    return _marked(bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_files=_fonts())))


def _fitting(svg: str, scale: float) -> float:
    """The scale at which the picture's sides and area stay within what viewers open."""
    found = _SIZE.search(svg)
    width, height = (float(each) for each in found.groups()) if found else (1.0, 1.0)
    scale = min(scale, _MOST_SIDE / max(width, height, 1.0), (_MOST_PIXELS / max(width * height, 1.0)) ** 0.5)
    if scale < _LEAST_SCALE:
        raise InputError(
            f"a picture of {width:,.0f} × {height:,.0f} is too large for PNG",
            why="its text could not be read any more",
            fix="write it as SVG, or show less: --depth, --collapse, --focus",
        )
    return scale


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
