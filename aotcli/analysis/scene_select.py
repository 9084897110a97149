"""Parts of a step: the neighbourhood of a node, one half, or only what is saved."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fnmatch import fnmatchcase

from aotcli.analysis.op_names import op_label
from aotcli.analysis.scene import LinkKind, Scene, Side
from aotcli.analysis.scene_open import no_match
from aotcli.analysis.scene_step import SavedFlow, Step, Unit


def focus_step(step: Step, focus: str, radius: int) -> Step:
    """The units that `focus` names and those within `radius` links of them.

    `focus` is a node's name, a module's path (or a pattern for it), or an op. Raises InputError where nothing matches.
    """
    neighbours: list[list[int]] = [[] for _ in step.units]
    for source, reader in _pairs(step):
        neighbours[source].append(reader)
        neighbours[reader].append(source)
    kept = set(_named(step, focus))
    edge = list(kept)
    for _ in range(radius):
        edge = [near for unit in edge for near in neighbours[unit] if near not in kept and not kept.add(near)]
    return _restricted(step, kept)


def _pairs(step: Step) -> list[tuple[int, int]]:
    pairs = list(step.flows)
    pairs += [(flow.maker, reader) for flow in step.saved if flow.maker is not None for reader in flow.readers]
    return pairs


def _named(step: Step, focus: str) -> list[int]:
    tests: tuple[Callable[[Unit], bool], ...] = (
        lambda unit: unit.node.name == focus,
        lambda unit: unit.module == focus or unit.module.startswith(f"{focus}."),
        lambda unit: bool(unit.module) and fnmatchcase(unit.module, focus),
        lambda unit: focus in (unit.node.target, op_label(unit.node.target)),
    )
    for test in tests:
        found = [position for position, unit in enumerate(step.units) if test(unit)]
        if found:
            return found
    names = [unit.node.name for unit in step.units] + [unit.module for unit in step.units]
    raise no_match(f"--focus {focus}: no node, module or op is called so", focus, names)


def keep_side(step: Step, only: str) -> Step:
    """One half, and the saved values at its edge."""
    kept = {position for position, unit in enumerate(step.units) if unit.side == only}
    return _restricted(step, kept, saved_edges=True)


def _restricted(step: Step, kept: set[int], *, saved_edges: bool = False) -> Step:
    """The step without the units outside `kept`. Saved values stay where both ends do; with `saved_edges`, where one
    does."""
    number = {old: new for new, old in enumerate(sorted(kept))}
    saved: list[SavedFlow] = []
    for flow in step.saved:
        maker = number.get(flow.maker) if flow.maker is not None else None
        readers = tuple(number[reader] for reader in flow.readers if reader in number)
        if (maker is not None or readers) if saved_edges else (maker is not None and readers):
            saved.append(SavedFlow(flow.value, maker, readers))
    return dataclasses.replace(
        step,
        units=tuple(step.units[old] for old in number),
        flows=tuple((number[a], number[b]) for a, b in step.flows if a in number and b in number),
        saved=tuple(saved),
        reads=tuple((name, number[unit]) for name, unit in step.reads if unit in number),
        results=tuple((number[unit], forward) for unit, forward in step.results if unit in number),
    )


def keep_saved(scene: Scene) -> Scene:
    """The saved values, the boxes that make them and those that read them."""
    links = [link for link in scene.links if link.kind is LinkKind.SAVED]
    ends = {end for link in links for end in (link.source, link.target)}
    boxes = tuple(box for box in scene.boxes if box.id in ends or box.side is Side.SAVED)
    used = {box.group for box in boxes}
    groups = tuple(group for group in scene.groups if group.id in used)
    parents = {group.parent for group in groups}
    groups = tuple(group for group in scene.groups if group.id in used | parents)
    return dataclasses.replace(scene, boxes=boxes, links=tuple(links), groups=groups)
