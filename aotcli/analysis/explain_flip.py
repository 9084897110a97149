"""The shortest annotation that turns a decision round, found by trying: the fewest conditions first, then the shortest
text, that means these values and no others that the plan treats alike; then the plan is made again with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from aotcli.analysis.explain_change import change_between
from aotcli.analysis.explain_find import Found, find
from aotcli.analysis.explain_groups import Group
from aotcli.analysis.explain_region import PlannedRegion
from aotcli.analysis.layers import MODEL_ITSELF
from aotcli.analysis.op_names import node_label
from aotcli.analysis.patterns import op_names
from aotcli.analysis.wishes import matches_rule
from aotcli.errors import InputError, PlanImpossibleError
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Flip
from aotcli.ir.policy import Action, PolicyRule
from aotcli.ir.sizes import size_text

Replan = Callable[[Sequence[PolicyRule]], Sequence[PlannedRegion]]
"""Plans a step once more under rules; regions in which they mean nothing keep their partition."""

_MOST_TRIED = 3
_MOST_NAMES = 64


@dataclass(frozen=True, slots=True)
class Annotation:
    """Rules, and the patterns that mean the same on the command line."""

    rules: tuple[PolicyRule, ...]
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flipped:
    """A flip, and the plans under it."""

    flip: Flip
    regions: Sequence[PlannedRegion] | None


def flip_group(regions: Sequence[PlannedRegion], group: Group, replan: Replan) -> Flipped:
    """The shortest annotation that makes `group` recomputed where it is saved, or saved where it is recomputed."""
    action = Action.RECOMPUTE if group.fate is Fate.SAVED else Action.SAVE
    obstacle, tried = "", None
    for number, annotation in enumerate(candidates(regions, group, action)):
        if number == _MOST_TRIED:
            break
        tried = tried or annotation
        try:
            after = replan(annotation.rules)
        except PlanImpossibleError as error:
            obstacle = obstacle or error.why
            continue
        if all(after[group.region].fate(each) is not group.fate for each in group.made):
            return Flipped(Flip(annotation.rules, annotation.patterns, change_between(regions, after)), after)
        obstacle = obstacle or "planned with that wish, the values stay as they are"
    rules, patterns = (tried.rules, tried.patterns) if tried is not None else ((), ())
    return Flipped(Flip(rules, patterns, None, obstacle or "no rule means these values alone"), None)


def candidates(regions: Sequence[PlannedRegion], group: Group, action: Action) -> Iterator[Annotation]:
    """Annotations that mean exactly `group` among all that has its fate, the shortest first."""
    region = regions[group.region]
    wanted = {(group.region, each.maker) for each in group.made}
    names = tuple(region.graph.nodes[each.maker].name for each in group.made)
    for patterns in _patterns(region, group):
        found = [_found(regions, pattern) for pattern in patterns]
        # A node's name says little, and is another in the next version: not where it only happens to be an op's, too.
        if all(each is not None and not each.exact for each in found):
            rules = _rules(found, action)
            if _meant(regions, group.fate, rules) == wanted:
                yield Annotation(rules, patterns)
    if len(names) <= _MOST_NAMES:
        rules = _rules([_found(regions, name) for name in names], action)
        if _meant(regions, group.fate, rules) == wanted:
            yield Annotation(rules, names)


def _found(regions: Sequence[PlannedRegion], pattern: str) -> Found | None:
    try:
        return find([region.graph for region in regions], pattern, [region.all_made for region in regions])
    except InputError:  # a word that means nothing as a pattern
        return None


def _rules(found: Sequence[Found | None], action: Action) -> tuple[PolicyRule, ...]:
    meant = [each for each in found if each is not None]
    return tuple(rule for each in meant for rule in each.asking(action, f"--{action} {each.pattern}"))


def _meant(regions: Sequence[PlannedRegion], fate: Fate, rules: Sequence[PolicyRule]) -> set[tuple[int, int]]:
    """Memory of one fate that rules mean: region and maker."""
    return {
        (number, each.maker)
        for number, region in enumerate(regions)
        for each in region.made
        if region.fate(each) is fate and any(matches_rule(region.graph, rule, each) for rule in rules)
    }


def _patterns(region: PlannedRegion, group: Group) -> Iterator[tuple[str, ...]]:
    """Patterns worth trying, the shortest first."""
    graph = region.graph
    makers = [graph.nodes[each.maker] for each in group.made]
    op = op_names(graph, makers[0])[2]
    paths = list(dict.fromkeys(node.module for node in makers))
    known = [MODEL_ITSELF if path == "" else path for path in paths if path is not None]
    folded = _folded(known)
    lines = {node.source for node in makers}
    simple = [op, *([folded] if folded is not None else [])]
    simple += [line.rpartition("/")[2] for line in lines if line is not None and len(lines) == 1]
    for each in sorted(simple, key=lambda each: (len(each), each)):
        yield (each,)
    if folded is not None:
        yield (f"{folded}.{op}",)
        yield (f"{folded}.{node_label(graph, makers[0])}",)
        yield (f"{folded}.{op}@{size_text(group.made[0].nbytes)}",)
    if len(known) > 1 and len(known) == len(paths):
        yield tuple(known)
        yield tuple(f"{path}.{op}" for path in known)


def _folded(paths: Sequence[str]) -> str | None:
    """One pattern for all paths, with ``*`` where they differ; None where they are not of one form."""
    parts = [path.split(".") for path in paths]
    if not parts or len({len(each) for each in parts}) > 1:
        return None
    columns = zip(*parts, strict=True)
    return ".".join(column[0] if len(set(column)) == 1 else "*" for column in columns)
