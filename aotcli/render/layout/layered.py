"""A scene as layers: boxes on ranks, and links as chains of nodes from rank to rank."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Route:
    """A link's way from its upper to its lower end: nodes, one on each rank. `up` says that the link itself runs
    upwards. A cut link has two ways, the second in `far`."""

    link: int
    nodes: list[int]
    up: bool
    weight: int
    far: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Layers:
    """Nodes on ranks: the scene's boxes first (their numbers are positions in `scene.boxes`), then what stands for the
    links that pass a rank. `lane` is 0 for forward, 1 between, 2 for backward; `group` is the number of the innermost
    group in `scene.groups`, -1 outside all. `stub_text` names the other end of a cut link, by node."""

    rank: list[int]
    lane: list[int]
    group: list[int]
    routes: list[Route]
    stub_text: dict[int, str]
    boxes: int

    @property
    def ranks(self) -> int:
        return max(self.rank, default=-1) + 1


@dataclass(frozen=True, slots=True)
class Arc:
    """A link between two boxes, upper end first."""

    link: int
    top: int
    bottom: int
    up: bool
    weight: int
