"""Graphviz as the engine that places boxes: fed the hairpin form, watched by a clock, not missed where it is not."""

from __future__ import annotations

import json
import shutil
import subprocess

from aotcli.render.dot import render_dot
from aotcli.render.layout.drawing import Drawing
from aotcli.render.layout.graphviz import drawing_of

_PROGRAM = "dot"


def place_with_dot(own: Drawing, time_limit_s: float) -> tuple[Drawing, tuple[str, ...]]:
    """The drawing as Graphviz lays it out; else `own`, with a note that says why."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return own, ("Graphviz is not installed (apt install graphviz): drawn with aotcli's own layout",)
    sizes = {box.id: (placed.width, placed.height) for box, placed in zip(own.scene.boxes, own.boxes, strict=True)}
    text = render_dot(own.scene, sizes=sizes)
    try:
        done = subprocess.run(
            [program, "-Tjson"], input=text.encode("utf-8"), capture_output=True, timeout=time_limit_s, check=True
        )
        return drawing_of(own, json.loads(done.stdout)), ()
    except subprocess.TimeoutExpired:
        why = f"Graphviz took longer than {time_limit_s:g} s"
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f"Graphviz failed{f': {last[0]}' if last else ''}"
    except (OSError, ValueError, KeyError) as error:
        why = f"Graphviz could not be used: {type(error).__name__}: {error}"
    return own, (f"{why}: drawn with aotcli's own layout",)
