"""A picture on the way to compilation: a partition function that draws what it is given and what it decides."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from aotcli.analysis.scene_build import SceneOptions
from aotcli.analysis.summary import summarize_recomputed
from aotcli.errors import InputError, OutputError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition

_SUFFIXES = {".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot"}


def drawing(
    path: str | PathLike[str],
    partition_fn: str | Callable[..., Any] = "mincut",
    *,
    view: SceneOptions | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """A partition function that partitions as `partition_fn` does and draws each joint graph with its plan.

        aot_function(f, compiler, partition_fn=aotcli.drawing("joint.svg", default_partition))
        torch.compile(model, options={"custom_partitioner_fn": aotcli.drawing("joint.svg")})

    `partition_fn` is a strategy of aotcli, with its `options`, or any partition function that PyTorch takes. The first
    graph is written to `path`, the next ones to ``joint-2.svg`` and so on; the suffix says which format. `view` is what
    is shown, as in `aotcli.draw`.

    Raises InputError for a suffix that means no format or a view that there is not, StrategyError for an unknown
    strategy or option, EnvironmentProblem without a fit torch. What fails while drawing is a warning.
    """
    from aotcli.api.draw import check_view
    from aotcli.capture.environment import require_torch

    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        fix = f"write {target.with_suffix('.svg')}"
        raise InputError(f"{target}: the name does not say which format is meant", why=f"known are {known}", fix=fix)
    chosen = view or SceneOptions()
    check_view(chosen)
    require_torch()
    from aotcli.lowering.partitioner import Partitioner
    from aotcli.lowering.watched import WatchedPartitioner

    function = Partitioner(partition_fn, **options) if isinstance(partition_fn, str) else partition_fn
    drawn: list[Path] = []

    def write(graph: JointGraph, partition: Partition) -> None:
        number = f"-{len(drawn) + 1}" if drawn else ""
        drawn.append(target.with_name(f"{target.stem}{number}{target.suffix}"))
        _write(graph, partition, chosen, drawn[-1], target.stem)

    return WatchedPartitioner(function, write)


def _write(graph: JointGraph, partition: Partition, view: SceneOptions, path: Path, name: str) -> None:
    from aotcli.analysis.scene_build import build_scene
    from aotcli.api.draw import Picture
    from aotcli.ir.files import write_atomically
    from aotcli.render.layout import draw_scene
    from aotcli.render.picture_caption import plan_caption

    scene = build_scene(graph, partition, view)
    recomputed = summarize_recomputed(graph, partition.recomputed)
    caption = plan_caption(f"{name} · {partition.strategy}", scene.totals, recomputed)
    picture = Picture(graph.name, draw_scene(scene), caption)
    try:
        write_atomically(path, picture.data(_SUFFIXES[path.suffix.lower()]))
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written", why=error.strerror or str(error), fix="give another path"
        ) from error
