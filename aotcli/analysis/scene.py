"""A training step as a picture shows it: boxes, links between them, and nested groups. Plain data, no coordinates.

    scene = build_scene(graph, partition, SceneOptions())       # aotcli/analysis/scene_build.py
    drawing = draw_scene(scene)                                 # aotcli/render/layout: the same with coordinates

Terms that hold throughout:

* *Forward* runs down on the left, the *backward* climbs on the right, *saved values* stand between them: each is a box
  of its own (kind SAVED) with a link from the box that makes it and links to the backward boxes that read it.
* A box is one op, or a module whose ops are not shown one by one, or a saved value, or a placeholder, or a result.
  Views have no box unless they are asked for: who reads a view is linked to what it is a view of.
* What the backward computes again has a box of its own (`recomputed`), apart from the module's gradient ops.
* Equal layers share their boxes: `count` says how many layers a box stands for, `layers` which; members and source are
  those of the first one, bytes and FLOPs those of all together. Links from one such layer to the next are left out.
* Ids are stable: they follow from names, side and options, not from the order of anything; equal scenes have equal ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from aotcli.ir.tensor import TensorSpec


class Side(StrEnum):
    """Where a box stands, left to right."""

    FORWARD = "forward"
    SAVED = "saved"
    BACKWARD = "backward"


class BoxKind(StrEnum):
    """What a box stands for."""

    OP = "op"  # one op, or some that follow each other in one module
    MODULE = "module"  # a module's ops of one side
    SAVED = "saved"  # values that the forward hands to the backward
    PARAM = "param"  # parameters and buffers
    INPUT = "input"
    TANGENT = "tangent"  # where the backward starts
    RESULT = "result"  # what the step returns


class LinkKind(StrEnum):
    """What flows along a link."""

    FLOW = "flow"  # within the forward
    GRADIENT = "gradient"  # within the backward; drawn upwards
    SAVED = "saved"  # to or from a saved value
    READ = "read"  # from a placeholder; or, without a plan, from the forward to the backward


class Change(StrEnum):
    """How a box differs between two graphs that are drawn as one."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"  # another op, shape or dtype
    NOW_SAVED = "now saved"  # was recomputed, is saved now
    NOW_RECOMPUTED = "now recomputed"


@dataclass(frozen=True, slots=True)
class Box:
    """One box.

    `label` is what a reader calls it: a module's name within its group, or an op. `group` is the id of the innermost
    group around it, None outside all. `members` are the joint graph's nodes behind it (for a saved value, the values),
    those of the first layer, in run order, and `all_members` those of all layers; `ops` counts the latter. `value` is
    its main result. `nbytes` are
    what its results take (for a saved value: what saving it costs), of all layers. `flops` is None where an op has no
    known formula. `reasons` say why a saved value is saved; `kept_as` what it is
    besides (output, input, ...) where saving it costs nothing. `was` is the id that the box had in the other graph, or
    what it was there, where two graphs are drawn as one.
    """

    id: str
    kind: BoxKind
    side: Side
    label: str
    group: str | None = None
    recomputed: bool = False
    count: int = 1
    layers: str = ""
    members: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    ops: int = 0
    module: str | None = None
    module_type: str | None = None
    source: str | None = None
    value: TensorSpec | None = None
    nbytes: int = 0
    flops: int | None = 0
    reasons: tuple[str, ...] = ()
    kept_as: str = ""
    change: Change = Change.SAME
    was: str = ""
    all_members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A link in its true direction, by box ids. `nbytes` are the values that pass, `values` how many (all layers)."""

    source: str
    target: str
    kind: LinkKind
    nbytes: int = 0
    values: int = 1
    change: Change = Change.SAME


@dataclass(frozen=True, slots=True)
class Group:
    """A module that is open: a frame around its boxes of one side. `parent` is the id of the group around it.

    `id` is ``f:h.*`` or ``b:h.*``: the same path on both sides is the same module.
    """

    id: str
    side: Side
    label: str
    path: str
    parent: str | None = None
    count: int = 1
    layers: str = ""
    module_type: str | None = None
    boxes: int = 0


@dataclass(frozen=True, slots=True)
class SceneTotals:
    """What the header says about the whole step, whatever part of it is drawn. Bytes by unique storage."""

    ops: int = 0
    forward_ops: int = 0
    backward_ops: int = 0
    recomputed_ops: int = 0
    saved_bytes: int = 0
    saved_values: int = 0
    peak_bytes: int = 0
    forward_flops: int = 0
    backward_flops: int = 0
    recompute_flops: int = 0


@dataclass(frozen=True)
class Scene:
    """One region. Boxes of the forward stand in run order, then saved values, then the backward's in run order."""

    name: str
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    groups: tuple[Group, ...] = ()
    totals: SceneTotals = field(default_factory=SceneTotals)
    strategy: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def box_index(self) -> dict[str, int]:
        """Position of each box by id."""
        return {box.id: position for position, box in enumerate(self.boxes)}
