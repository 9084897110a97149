"""From a joint graph and its plan to the boxes and links of a picture (aotcli/analysis/scene.py says what they mean).

1. `step_of` lists the ops of both halves, views seen through.
2. `find_runs` finds equal layers; `shown_paths` gives every module the path that it is drawn under.
3. `open_modules` chooses the modules that are shown from inside; all others are one box for each side.
4. `assign_boxes` gives every op its box; `SceneBuilder` adds up what each box holds and links them.

Everything is near-linear in nodes and edges.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.hierarchy import ModuleTree, find_runs, module_tree, shown_paths
from aotcli.analysis.scene import Scene, SceneTotals
from aotcli.analysis.scene_boxes import SceneBuilder
from aotcli.analysis.scene_calls import split_calls
from aotcli.analysis.scene_open import Openness, assign_boxes, matches, open_modules
from aotcli.analysis.scene_select import focus_step, keep_saved, keep_side
from aotcli.analysis.scene_step import Step, is_hidden, step_of
from aotcli.analysis.summary import count_joint, count_storages
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Partition

DEFAULT_LIMIT = 60
PARTS = ("forward", "backward", "joint", "saved")
SHOWN = ("params", "inputs", "views")


@dataclass(frozen=True, slots=True)
class SceneOptions:
    """What to show.

    `depth` opens modules above that level; None opens as many levels as give at most `limit` boxes, never a module
    without submodules. `expand` and `collapse` are patterns on module paths: the first are shown op by op, the second
    as one box. `fold` shows equal layers as one. `show` names what is left out otherwise: params, inputs, views.
    `only` is "", forward, backward, joint (the graph without the plan) or saved (values, who makes and who reads
    them). `focus` is a node or a module: it and what is within `radius` links of it, op by op. `loss` says that the
    forward's result is the loss.
    """

    depth: int | None = None
    expand: tuple[str, ...] = ()
    collapse: tuple[str, ...] = ()
    fold: bool = True
    show: frozenset[str] = frozenset()
    only: str = ""
    focus: str | None = None
    radius: int = 2
    limit: int = DEFAULT_LIMIT
    loss: bool = False


def build_scene(graph: JointGraph, partition: Partition | None, options: SceneOptions | None = None) -> Scene:
    """The scene of one region. Without a `partition`, its joint graph: nothing is saved or recomputed.

    Raises InputError where a pattern or the focus matches nothing, naming what is near.
    """
    options = options or SceneOptions()
    plan = None if options.only == "joint" else partition
    focused = graph.index.get(options.focus or "")
    hidden = focused is not None and is_hidden(graph.nodes[focused], views=False)
    step = step_of(graph, plan, views="views" in options.show or hidden)
    return scene_of_step(step, plan, options)


def scene_of_step(step: Step, partition: Partition | None, options: SceneOptions) -> Scene:
    """The scene of a step; `partition` gives the totals. Raises what `build_scene` raises."""
    if options.focus is not None:
        step = focus_step(step, options.focus, options.radius)
    if options.only in ("forward", "backward"):
        step = keep_side(step, options.only)
    tree = module_tree(step)
    expand = matches(tree, options.expand, "--expand")
    collapse = matches(tree, options.collapse, "--collapse")
    apart = {path for path in (*expand, *collapse) if not _covers_siblings(tree, path, {*expand, *collapse})}
    runs = find_runs(step, tree, apart.__contains__) if options.fold and options.focus is None else []
    places = shown_paths(tree, runs)
    scene = _deepest(step, tree, Openness(tree, places, expand, collapse), partition, options)
    return keep_saved(scene) if options.only == "saved" else scene


def _deepest(
    step: Step, tree: ModuleTree, openness: Openness, partition: Partition | None, options: SceneOptions
) -> Scene:
    """The scene at the depth that was asked for, else at the deepest that has room for all its boxes."""

    def build(depth: int, *, leaves: bool = False, coarse: bool = False) -> Scene:
        opened = open_modules(openness, depth, leaves=leaves)
        places = assign_boxes(step, openness, opened, single=options.focus is not None, coarse=coarse)
        places = split_calls(step, openness, places)
        builder = SceneBuilder(step, openness, opened, places)
        strategy = partition.strategy if partition is not None else ""
        return builder.scene(_totals(step, partition), strategy, options.show, loss=options.loss)

    if options.depth is not None:
        return build(options.depth, leaves=True)
    deepest = max(tree.level.values())
    if options.focus is not None:
        return build(deepest + 1, leaves=True)
    best: Scene | None = None
    for depth in range(1, max(1, deepest) + 1):
        for coarse in (False, True):
            scene = build(depth, coarse=coarse)
            if len(scene.boxes) <= options.limit:
                best = scene
                break
            best = best or (scene if coarse else None)
        else:
            break
    assert best is not None
    return best


def _covers_siblings(tree: ModuleTree, path: str, patterned: set[str]) -> bool:
    """Whether a pattern took all numbered siblings of the path, and of the modules around it."""
    return all(
        sibling in patterned
        for each in tree.ancestors(path)[1:]
        if each.rpartition(".")[2].isdigit()
        for sibling in (other + path[len(each) :] for other in tree.children[tree.parent[each]])
        if sibling in tree.children
    )


def _totals(step: Step, partition: Partition | None) -> SceneTotals:
    if partition is None:
        joint = count_joint(step.graph)
        return SceneTotals(
            joint.ops,
            joint.forward_ops,
            joint.backward_ops,
            forward_flops=joint.forward_flops,
            backward_flops=joint.backward_flops,
        )
    return SceneTotals(
        ops=len(partition.forward_nodes) + len(partition.backward_nodes),
        forward_ops=len(partition.forward_nodes),
        backward_ops=len(partition.backward_nodes),
        recomputed_ops=len(partition.recomputed),
        saved_bytes=partition.saved_bytes,
        saved_values=count_storages(partition, Category.ACTIVATION),
        peak_bytes=partition.peak_bytes,
        forward_flops=partition.forward_flops,
        backward_flops=partition.backward_flops,
        recompute_flops=partition.recompute_flops,
    )
