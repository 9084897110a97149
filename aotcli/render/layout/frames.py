"""Frames around open modules: room for them between ranks, and which of them can be drawn."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.scene import Scene
from aotcli.render.layout.drawing import DETAIL_SIZE, Frame, PlacedBox
from aotcli.render.layout.layered import Layers
from aotcli.render.scene_text import group_text
from aotcli.render.text_width import fit_width, text_width

FRAME_PAD = 6.0
FRAME_HEAD = 15.0


@dataclass(frozen=True, slots=True)
class Margins:
    """Extra room above and below each rank, and at the sides of the whole, in pixels."""

    above: tuple[float, ...]
    below: tuple[float, ...]
    side: float


def _depths(scene: Scene) -> list[int]:
    """How many frames lie inside each group's own, along the deepest way."""
    number = {group.id: position for position, group in enumerate(scene.groups)}
    depths = [0] * len(scene.groups)
    for position in range(len(scene.groups) - 1, -1, -1):
        parent = scene.groups[position].parent
        if parent is not None:
            depths[number[parent]] = max(depths[number[parent]], depths[position] + 1)
    return depths


def frame_margins(scene: Scene, layers: Layers) -> Margins:
    """Room for the frames that begin above a rank, with their labels, and for those that end below it."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    number = {group.id: position for position, group in enumerate(scene.groups)}
    for position, box in enumerate(scene.boxes):
        group = box.group
        while group is not None:
            which, rank = number[group], layers.rank[position]
            first[which] = min(first.get(which, rank), rank)
            last[which] = max(last.get(which, rank), rank)
            group = scene.groups[which].parent
    above = [0.0] * layers.ranks
    below = [0.0] * layers.ranks
    depths = _depths(scene)
    for which, rank in first.items():
        above[rank] = max(above[rank], (depths[which] + 1) * FRAME_HEAD)
        below[last[which]] = max(below[last[which]], (depths[which] + 1) * FRAME_PAD)
    side = FRAME_PAD * (max(depths, default=-1) + 1) + 2
    return Margins(tuple(above), tuple(below), side)


def place_frames(scene: Scene, boxes: Sequence[PlacedBox]) -> tuple[Frame, ...]:
    """A rectangle for each group whose boxes leave no other box inside it, outer ones first."""
    number = {group.id: position for position, group in enumerate(scene.groups)}
    inside: list[list[int]] = [[] for _ in scene.groups]
    for position, box in enumerate(scene.boxes):
        group = box.group
        while group is not None:
            inside[number[group]].append(position)
            group = scene.groups[number[group]].parent
    depths = _depths(scene)
    by_top = sorted(range(len(boxes)), key=lambda each: boxes[each].y)
    tops = [boxes[each].y for each in by_top]
    tallest = max((box.height for box in boxes), default=0.0)
    frames: list[Frame] = []
    for which, members in enumerate(inside):
        if len(members) < 2:
            continue
        frame = _frame(scene, which, [boxes[each] for each in members], depths[which])
        near = by_top[bisect_left(tops, frame.y - tallest) : bisect_right(tops, frame.y + frame.height)]
        if not _strangers(frame, boxes, near, set(members)):
            frames.append(frame)
    return tuple(frames)


def _frame(scene: Scene, which: int, members: Sequence[PlacedBox], depth: int) -> Frame:
    pad, head = FRAME_PAD * (depth + 1), FRAME_HEAD * (depth + 1)
    left = min(box.x for box in members) - pad
    right = max(box.x + box.width for box in members) + pad
    top = min(box.y for box in members) - head
    bottom = max(box.y + box.height for box in members) + pad
    group, room = scene.groups[which], right - left - 8
    text = group_text(group)
    if text_width(text, DETAIL_SIZE) > room:
        text = fit_width(group_text(group, kind=False), DETAIL_SIZE, room)
    return Frame(which, round(left, 1), round(top, 1), round(right - left, 1), round(bottom - top, 1), text)


def _strangers(frame: Frame, boxes: Sequence[PlacedBox], near: Sequence[int], members: set[int]) -> bool:
    """Whether a box of `near` that is no member lies in the frame."""
    right, bottom = frame.x + frame.width, frame.y + frame.height
    for position in near:
        box = boxes[position]
        beside = box.x >= right or box.x + box.width <= frame.x or box.y >= bottom or box.y + box.height <= frame.y
        if position not in members and not beside:
            return True
    return False
