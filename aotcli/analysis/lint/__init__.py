"""Rules over a planned step: what could be had for less, what cannot be had at all, and what to do about it.

    subject = Subject(trace, regions)           # analysis/lint/_contract.py
    findings = find_all(subject)                # every rule, equal findings of repeated layers folded

A rule is a file without a leading underscore that defines one subclass of `Rule`. Rules run in the order of their rank,
and a value belongs to the first rule that reports it, whichever rules are shown later: so what one rule says does not
depend on which others were asked for.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache

from aotcli.analysis.lint._contract import Hit, Rule, Subject
from aotcli.analysis.lint._fold import fold_hits
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.lint._rules_for import merge_rules
from aotcli.errors import InputError
from aotcli.ir.finding import Finding, RuleInfo

__all__ = ["PlannedRegion", "Rule", "Subject", "choose_rules", "find_all", "merge_rules", "rule_infos"]


@cache
def rule_classes() -> tuple[type[Rule], ...]:
    """Every rule, by code."""
    stems = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    classes = [_class_in(importlib.import_module(f"{__name__}.{stem}").__dict__, stem) for stem in stems]
    return tuple(sorted(classes, key=lambda each: each.code))


def rule_infos() -> tuple[RuleInfo, ...]:
    """Every rule's code, name and summary, by code."""
    return tuple(each.info() for each in rule_classes())


def choose_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[RuleInfo, ...]:
    """The rules that `select` (all, where empty) has and `ignore` has not. Both hold codes or their beginnings; of two
    that mean one rule the longer counts, and of equal ones `ignore`.

    Raises InputError for a text that is the beginning of no code, and where no rule is left.
    """
    for option, given in (("--select", select), ("--ignore", ignore)):
        for text in given:
            _check(option, text)
    chosen = tuple(
        info for info in rule_infos() if _longest(info.code, select or ("AOT",)) > _longest(info.code, ignore)
    )
    if not chosen:
        raise InputError(
            "no rule is left", why="--ignore takes away all that --select names", fix="leave one of them out"
        )
    return chosen


def find_all(subject: Subject) -> tuple[Finding, ...]:
    """What all rules find, by code, most bytes first."""
    taken: set[tuple[str, str]] = set()
    found: list[tuple[type[Rule], list[Hit]]] = []
    for rule in sorted(rule_classes(), key=lambda each: each.rank):
        hits: list[Hit] = []
        for hit in rule().find(subject):
            values = {(hit.region, value) for value in hit.values}
            if not values & taken:
                taken |= values
                hits.append(hit)
        found.append((rule, hits))
    by_code = sorted(found, key=lambda pair: pair[0].code)
    return tuple(finding for rule, hits in by_code for finding in fold_hits(rule.info(), hits))


def _longest(code: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)


def _check(option: str, text: str) -> None:
    codes = [info.code for info in rule_infos()]
    if text and any(code.startswith(text) for code in codes):
        return
    near = get_close_matches(text.upper(), codes, n=1)
    raise InputError(
        f"{option} {text}: there is no such rule",
        why=f"there are {', '.join(codes)}, and beginnings such as AOT",
        fix=f"did you mean {near[0]}?" if near else "`aotcli lint --list-rules` describes them",
    )


def _class_in(names: dict[str, object], stem: str) -> type[Rule]:
    """The one rule that a module defines."""
    for value in names.values():
        if inspect.isclass(value) and issubclass(value, Rule) and value.__module__ == f"{__name__}.{stem}":
            return value
    raise TypeError(f"{__name__}.{stem} defines no rule: a file here without a leading underscore must")
