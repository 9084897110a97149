"""The tree of modules behind a step, and which of them are equal layers that a picture may show as one.

A container that only holds numbered modules (a ModuleList) is no level of its own: in ``h.0.ln1`` the levels are
``h.0`` and ``ln1``. Numbered siblings are equal where all they hold has the same ops, shapes and dtypes in the same
submodules, or nearly so. Equal ones that follow each other make a run, which is split where the plan saves or
recomputes other values from some layer on; a single layer whose plan differs stays with its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aotcli.analysis.scene_step import ENDS, Step
from aotcli.ir.tensor import TensorSpec, tensor_leaves

ROOT = ""
_FEW_OPS = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """Equal layers: sibling paths in order, and the path that stands for them: ``h.*``, ``h.2-5``."""

    paths: tuple[str, ...]
    shown: str
    layers: str


@dataclass
class ModuleTree:
    """Modules of a step by path; the root is "". `own` counts units that belong to a module itself, `units` those of
    all it holds. `level` counts modules from the root's children (1) down."""

    parent: dict[str, str] = field(default_factory=dict[str, str])
    children: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    own: dict[str, int] = field(default_factory=dict[str, int])
    types: dict[str, str | None] = field(default_factory=dict[str, str | None])
    level: dict[str, int] = field(default_factory=dict[str, int])

    def ancestors(self, path: str) -> list[str]:
        """From the root down to `path` itself."""
        found = [path]
        while path != ROOT:
            path = self.parent[path]
            found.append(path)
        return found[::-1]

    def is_container(self, path: str) -> bool:
        """Whether `path` only holds numbered modules."""
        if path == ROOT or self.own.get(path) or _last(path).isdigit():
            return False
        return all(_last(child).isdigit() for child in self.children[path])


def module_tree(step: Step) -> ModuleTree:
    """The modules that own the units of `step`. What no module owns belongs to the model itself."""
    tree = ModuleTree(children={ROOT: []})
    for unit in step.units:
        path = unit.module
        _add(tree, path)
        tree.own[path] = tree.own.get(path, 0) + 1
        if tree.types.get(path) is None:
            tree.types[path] = unit.node.module_type
    tree.level[ROOT] = 0
    for path in tree.children:  # parents come before their children
        if path != ROOT:
            tree.level[path] = tree.level[tree.parent[path]] + (not tree.is_container(path))
    return tree


def _add(tree: ModuleTree, path: str) -> None:
    missing: list[str] = []
    while path not in tree.children:
        missing.append(path)
        path = path.rpartition(".")[0]
    for each in reversed(missing):
        tree.parent[each] = each.rpartition(".")[0]
        tree.children[tree.parent[each]].append(each)
        tree.children[each] = []


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def find_runs(step: Step, tree: ModuleTree, apart: Callable[[str], bool]) -> list[Run]:
    """Runs of at least two equal layers. A layer for which `apart` holds stands by itself."""
    structure, plan = _signatures(step, tree)

    def alike(left: str, right: str) -> bool:
        if apart(left) or apart(right) or left not in structure or right not in structure:
            return False
        return _nearly_equal(structure[left], structure[right])

    runs: list[Run] = []
    for parent, children in tree.children.items():
        numbered = sorted((c for c in children if _last(c).isdigit()), key=lambda child: int(_last(child)))
        for equal in _stretches(numbered, alike):
            parts = [part for part in _by_plan(equal, plan) if len(part) > 1]
            runs += [_run(parent, part, everything=len(part) == len(numbered)) for part in parts]
    return runs


def _run(parent: str, paths: Sequence[str], *, everything: bool) -> Run:
    first, last = _last(paths[0]), _last(paths[-1])
    name = "*" if everything else f"{first}-{last}"
    return Run(tuple(paths), f"{parent}.{name}" if parent else name, f"{first} to {last}")


def _stretches(paths: Sequence[str], alike: Callable[[str, str], bool]) -> list[list[str]]:
    """Neighbours that are alike together."""
    found: list[list[str]] = []
    for path in paths:
        if found and alike(found[-1][-1], path):
            found[-1].append(path)
        else:
            found.append([path])
    return found


def _by_plan(paths: list[str], plan: Mapping[str, int]) -> list[list[str]]:
    """Stretches of one plan; a single layer joins the stretch before it, or the first one after it."""
    merged: list[list[str]] = []
    for stretch in _stretches(paths, lambda left, right: plan.get(left) == plan.get(right)):
        if merged and (len(stretch) == 1 or len(merged[-1]) == 1):
            merged[-1] += stretch
        else:
            merged.append(list(stretch))
    return merged


def _nearly_equal(left: Counter[object], right: Counter[object]) -> bool:
    """Whether two modules hold the same ops, but for a few in many: what the first layer makes and all others read,
    for instance a mask, makes no other layer of it."""
    if left == right:
        return True
    differing = (left - right).total() + (right - left).total()
    return differing <= _FEW_OPS * min(left.total(), right.total())


def _signatures(step: Step, tree: ModuleTree) -> tuple[dict[str, Counter[object]], dict[str, int]]:
    """For each numbered module, how often it computes what, and a hash of what is saved and recomputed of it."""
    structure: dict[str, Counter[object]] = {}
    plan: dict[str, int] = {}
    saved = {flow.maker for flow in step.saved}
    numbered: dict[str, list[tuple[str, str]]] = {}
    for position, unit in enumerate(step.units):
        path = unit.module
        if path not in numbered:
            holders = [each for each in tree.ancestors(path) if _last(each).isdigit()]
            numbered[path] = [(holder, path[len(holder) :]) for holder in holders]
        layout = tuple((leaf.shape, leaf.dtype) for leaf in tensor_leaves(unit.node.value))
        for holder, inside in numbered[path]:
            op = (inside, unit.node.target, layout, unit.change in ENDS)
            if not unit.recomputed:  # on which side an op runs is up to the plan
                structure.setdefault(holder, Counter())[op] += 1
            if unit.recomputed or position in saved:
                plan[holder] = plan.get(holder, 0) + hash((op, unit.side))
    return structure, plan


@dataclass(frozen=True)
class Shown:
    """Where a module is in the picture: the path that it is drawn under, and which layers of which runs it is in."""

    path: str
    layers: tuple[tuple[str, str], ...] = ()


def shown_paths(tree: ModuleTree, runs: Iterable[Run]) -> dict[str, Shown]:
    """Every module's place when `runs` are drawn as one layer each."""
    run_of = {path: run for run in runs for path in run.paths}
    places: dict[str, Shown] = {ROOT: Shown(ROOT)}
    for path in tree.children:
        if path == ROOT:
            continue
        above = places[tree.parent[path]]
        run = run_of.get(path)
        name = _last(run.shown if run else path)
        layers = (*above.layers, (f"{above.path}.{name}", path)) if run else above.layers
        places[path] = Shown(f"{above.path}.{name}" if above.path else name, layers)
    return places


def first_tensor(unit_value: object) -> TensorSpec | None:
    """The first tensor of a value."""
    leaves = tensor_leaves(unit_value)  # type: ignore[arg-type]
    return leaves[0] if leaves else None
