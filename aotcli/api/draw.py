"""Draw a training step: a joint graph and its plan as SVG, PNG or DOT; two of them as one picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from aotcli.analysis.scene import Scene
from aotcli.analysis.scene_build import PARTS, SHOWN, SceneOptions
from aotcli.analysis.summary import summarize_recomputed
from aotcli.api.draw_plans import PlannedStep, plan_other, plan_step
from aotcli.api.result import PartitionResult
from aotcli.errors import InputError
from aotcli.ir.joint import JointGraph
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.layout.drawing import Drawing
from aotcli.render.svg import Caption

Progress = Callable[[str], None]
FORMATS = ("svg", "png", "dot")
ENGINES = ("aotcli", "dot")
TIME_LIMIT_S = 20.0


@dataclass(frozen=True, repr=False)
class Picture:
    """One region, drawn. A notebook shows it."""

    region: str
    drawing: Drawing
    caption: Caption

    @property
    def scene(self) -> Scene:
        return self.drawing.scene

    def svg(self) -> str:
        """The picture as SVG, with header and legend."""
        from aotcli.render.svg import render_svg

        return render_svg(self.drawing, self.caption)

    def png(self) -> bytes:
        """The picture as PNG. Raises EnvironmentProblem where the package for it is missing."""
        from aotcli.render.png import render_png

        return render_png(self.svg())

    def dot(self) -> str:
        """The drawn graph as DOT, with a cluster for each open module."""
        from aotcli.render.dot import render_dot

        return render_dot(self.scene, self.caption.title)

    def data(self, format_name: str) -> bytes:
        """The picture as a file of this format holds it."""
        if format_name == "png":
            return self.png()
        return (self.dot() if format_name == "dot" else self.svg()).encode("utf-8")

    def __repr__(self) -> str:
        return f"<Picture of {self.region}: {len(self.scene.boxes)} boxes>"

    def _repr_html_(self) -> str:
        from aotcli.render.notebook import picture_html

        return picture_html(self.svg(), self.caption.title)


@dataclass(frozen=True, repr=False)
class DrawResult:
    """The pictures of a step, one for each region. `label` names the plan; `notes` say what was not done as asked."""

    trace: Trace
    pictures: tuple[Picture, ...]
    label: str
    notes: tuple[str, ...] = field(default=())

    def svg(self) -> str:
        """The first region's picture as SVG."""
        return self.pictures[0].svg()

    def __repr__(self) -> str:
        boxes = ", ".join(f"{len(picture.scene.boxes)} boxes" for picture in self.pictures)
        return f"<Drawing of {self.trace.model.name}, {self.label}: {boxes}>"

    def _repr_html_(self) -> str:
        return "".join(picture._repr_html_() for picture in self.pictures)


def draw(
    model: Any,
    inputs: Any = None,
    *,
    strategy: str = "mincut",
    options: Mapping[str, object] | None = None,
    against: Trace | PartitionResult | str | None = None,
    region: str | None = None,
    engine: str = "aotcli",
    time_limit_s: float = TIME_LIMIT_S,
    view: SceneOptions | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    settings: CaptureSettings | None = None,
    **trace_options: Any,
) -> DrawResult:
    """Draw one training step.

        aotcli.draw("model.py").pictures[0]                   # in a notebook
        Path("net.svg").write_text(aotcli.draw(trace, strategy="recompute-all").svg())

    `model`, `strategy`, `options` and what follows `settings` are as in `aotcli.partition`; a `PartitionResult` is
    drawn with its first plan. `against` is another step to draw into the same picture: a trace, a result, or a name as
    `aotcli diff` takes it; ``@NAME`` is the same step, planned by another strategy. `region` is a region's name or
    number. `view` says what is shown. `engine` "dot" lets Graphviz place the boxes, for `time_limit_s` seconds.

    Raises InputError for a part, region, module or engine that there is not, and what `partition` raises.
    """
    view = view or SceneOptions()
    check_view(view, engine)
    planned = plan_step(model, inputs, strategy, options, view, cache, progress, settings, trace_options)
    other = None if against is None else plan_other(against, planned, strategy, cache, progress, settings)
    if other is not None and view.only == "joint":
        other = replace(other, partitions=(None,) * len(other.partitions))
    pictures: list[Picture] = []
    notes: dict[str, None] = {}
    names = _region_names(planned.trace)
    for position in _regions(names, region):
        if progress is not None:
            progress(f"drawing {names[position]}")
        scene = _scene(planned, position, other, replace(view, loss=planned.trace.loss))
        drawing, note = _place(scene, engine, time_limit_s)
        notes.update(dict.fromkeys(note))
        caption = _caption(planned, position, scene, view, other)
        pictures.append(Picture(names[position], drawing, caption))
    return DrawResult(planned.trace, tuple(pictures), planned.label or "joint", tuple(notes))


def check_view(view: SceneOptions, engine: str = "aotcli") -> None:
    """Refuse what no picture can show, before a model is captured.

    Raises InputError.
    """
    _check_choice("--only", view.only, PARTS, allowed=("",))
    _check_choice("--engine", engine, ENGINES)
    for each in view.show:
        _check_choice("--show", each, SHOWN)
    for option, number in (("--depth", view.depth), ("--radius", view.radius)):
        if number is not None and number < 0:
            raise InputError(f"{option} {number}", why="it counts from 0 up", fix=f"write {option} 1")


def _check_choice(option: str, value: str, choices: tuple[str, ...], allowed: tuple[str, ...] = ()) -> None:
    if value not in choices and value not in allowed:
        near = get_close_matches(value, choices, n=1)
        fix = f"did you mean {option} {near[0]}?" if near else f"write {option} {choices[0]}"
        raise InputError(f"{option} {value}", why=f"it is one of {', '.join(choices)}", fix=fix)


def _region_names(trace: Trace) -> list[str]:
    """What regions are called; by number where two have one name."""
    names = [graph.name for graph in trace.regions]
    return names if len(set(names)) == len(names) else [f"region{position}" for position in range(len(names))]


def _regions(names: list[str], region: str | None) -> list[int]:
    """Positions of the regions to draw. Raises InputError for one that there is not, and where there is none."""
    if not names:
        raise InputError("there is nothing to draw", why="the record has no region", fix="trace the model again")
    if region is None:
        return list(range(len(names)))
    if region in names:
        return [names.index(region)]
    if region.isdigit() and int(region) < len(names):
        return [int(region)]
    near = get_close_matches(region, names, n=1) or names[:1]
    why = f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"
    raise InputError(f"--region {region}", why=why, fix=f"write --region {near[0]}")


def _scene(planned: PlannedStep, position: int, other: PlannedStep | None, view: SceneOptions) -> Scene:
    from aotcli.analysis.scene_build import build_scene

    graph, partition = planned.trace.regions[position], planned.partitions[position]
    if view.only == "backward" and not graph.has_backward:
        raise InputError(
            f"{graph.name} has no backward", why="nothing that it computes needs a gradient", fix="leave --only out"
        )
    if other is None:
        return build_scene(graph, partition, view)
    from aotcli.analysis.scene_compare import build_merged_scene

    theirs = _counterpart(graph, position, planned, other)
    return build_merged_scene((graph, partition), (other.trace.regions[theirs], other.partitions[theirs]), view)


def _counterpart(graph: JointGraph, position: int, mine: PlannedStep, other: PlannedStep) -> int:
    """The other step's region that this one is drawn with: of equal number, else of equal name."""
    if len(mine.trace.regions) == len(other.trace.regions):
        return position
    names = [each.name for each in other.trace.regions]
    if graph.name in names:
        return names.index(graph.name)
    raise InputError(
        f"{other.words or 'the other step'} has no {graph.name}",
        why=f"it has {', '.join(names) or 'no region'}",
        fix=f"write --region {names[0]}" if names else "give another record",
    )


def _place(scene: Scene, engine: str, time_limit_s: float) -> tuple[Drawing, tuple[str, ...]]:
    from aotcli.render.layout import draw_scene

    drawing = draw_scene(scene)
    if engine != "dot":
        return drawing, ()
    from aotcli.api.draw_engine import place_with_dot

    return place_with_dot(drawing, time_limit_s)


def _caption(
    planned: PlannedStep, position: int, scene: Scene, view: SceneOptions, other: PlannedStep | None
) -> Caption:
    from aotcli.render.picture_caption import picture_caption

    graph, partition = planned.trace.regions[position], planned.partitions[position]
    theirs = None if other is None else other.partitions[_counterpart(graph, position, planned, other)]
    return picture_caption(
        planned.trace,
        graph.name,
        scene.totals,
        strategy=planned.label,
        recomputed=None if partition is None else summarize_recomputed(graph, partition.recomputed),
        part=_part(view),
        compared=other.words if other is not None else "",
        other_saved_bytes=theirs.saved_bytes if theirs is not None else 0,
    )


def _part(view: SceneOptions) -> str:
    """What of the step is drawn; "" for all of it."""
    if view.focus is not None:
        return f"only {view.focus} and what is within {view.radius} links of it"
    return {
        "forward": "only the forward, and what it saves",
        "backward": "only the backward, and what it reads of what is saved",
        "saved": "only saved values, who makes and who reads them",
    }.get(view.only, "")


def picture_name(result: DrawResult, picture: Picture, format_name: str) -> str:
    """``gpt-mincut.svg``; with the region where there are several."""
    names = [result.trace.model.name, result.label]
    if len(result.trace.regions) > 1:
        names.append(picture.region)
    stem = "-".join("".join(c if c.isalnum() or c in "._" else "-" for c in name) for name in names)
    return f"{stem.strip('-.')[:120] or 'picture'}.{format_name}"
