"""What NAME or PATTERN means: names of the graph, modules, ops or lines, looked for in that order.

* ``region1:...`` means that region alone;
* ``gpt.py:29`` is a source line;
* a node's own name (``mm_3``), or the name of a parameter, buffer or input (``h.0.fc.weight``);
* a glob over module paths (``h.0``, ``h.*.attn``): those modules and what lies inside;
* the same, a dot, and an op (``h.*.gelu``): that op in those modules themselves, or else anywhere inside;
* a glob over ops (``aten.bmm*``, ``gelu``);
* a glob over names;
* any of these with a size: ``h.*.relu@98MiB``, ``**@>1MiB`` (at least), ``gelu@<1MiB`` (at most).

What is found is written as the conditions of rules, so that a pattern that is explained can also be wished for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.patterns import is_line, matches_line, matches_module, matches_op, op_names
from aotcli.analysis.wishes import Made, made_values, matches_rule
from aotcli.errors import InputError
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.policy import Action, PolicyRule
from aotcli.ir.sizes import parse_size

_MOST_LISTED = 8
_ANY = Action.SAVE  # a pattern asks for nothing yet


@dataclass(frozen=True, slots=True)
class Found:
    """What a pattern means: any of `rules` (whose action says nothing here), in the regions at `regions`; `restricted`
    says that it names a region. `exact` is a single node or placeholder asked for by its name."""

    pattern: str
    rules: tuple[PolicyRule, ...]
    regions: tuple[int, ...]
    exact: bool = False
    restricted: bool = False

    def asking(self, action: Action, label: str) -> tuple[PolicyRule, ...]:
        """The rules with an action and a label."""
        return tuple(replace(rule, action=action, label=label) for rule in self.rules)


def find(graphs: Sequence[JointGraph], pattern: str, memory: Sequence[Sequence[Made]] | None = None) -> Found:
    """What `pattern` means in the regions of a trace; `memory` is what their forwards make, where it is known already.

    A reading that means memory of the forward comes before one that means other nodes only. Raises InputError where
    nothing matches, with what is near.
    """
    regions = tuple(range(len(graphs)))
    text = pattern.strip()
    before, colon, after = text.partition(":")
    named = [number for number, graph in enumerate(graphs) if graph.name == before]
    if colon and named and after:
        regions, text = tuple(named), after
    restricted = text != pattern.strip()
    text, sizes = _sizes(text)
    chosen = [graphs[number] for number in regions]
    made = [made_values(graph) for graph in graphs] if memory is None else memory
    other: Found | None = None
    for kind, plain in _meanings(chosen, text) if text else ():
        rules = tuple(replace(rule, min_bytes=sizes[0], max_bytes=sizes[1]) for rule in plain)
        matching = tuple(r for r in regions if _means_memory(graphs[r], rules, made[r]))
        if matching:
            return Found(pattern, rules, matching, kind == "name", restricted)
        matching = () if sizes != (None, None) else tuple(r for r in regions if _means_nodes(graphs[r], rules))
        if matching:
            other = other or Found(pattern, rules, matching, kind == "name", restricted)
        if other is not None and other.exact:
            break
    if other is None:
        raise _nothing(chosen, pattern, text)
    return other


def _sizes(text: str) -> tuple[str, tuple[int | None, int | None]]:
    """A pattern without its size, and the least and the most bytes that the size allows."""
    before, at, size = text.rpartition("@")
    if not at:
        return text, (None, None)
    nbytes = parse_size(size.lstrip("<>="))
    if size.startswith(">"):
        return before, (nbytes, None)
    return before, (None if size.startswith("<") else nbytes, nbytes)


def matches_node(graph: JointGraph, rule: PolicyRule, node: Node) -> bool:
    """Whether the conditions of a rule hold for a node of any kind; sizes are not looked at."""
    if rule.module is not None and not matches_module(rule.module, node.module, submodules=rule.submodules):
        return False
    if rule.op is not None and not (node.kind is NodeKind.OP and matches_op(rule.op, graph, node)):
        return False
    if rule.line is not None and not matches_line(rule.line, node.source):
        return False
    return rule.name is None or fnmatchcase(node.name, rule.name)


def _means_memory(graph: JointGraph, rules: Sequence[PolicyRule], memory: Sequence[Made]) -> bool:
    return any(matches_rule(graph, rule, made) for made in memory for rule in rules)


def _means_nodes(graph: JointGraph, rules: Sequence[PolicyRule]) -> bool:
    nodes = (node for node in graph.nodes if node.kind is not NodeKind.OUTPUT)
    return any(matches_node(graph, rule, node) for node in nodes for rule in rules)


def _meanings(graphs: Sequence[JointGraph], text: str) -> Iterator[tuple[str, list[PolicyRule]]]:
    """Readings of a pattern, the first that matches anything being meant."""
    if is_line(text):
        yield "line", [PolicyRule(_ANY, line=text)]
    names = [node.name for graph in graphs for node in graph.nodes if text in (node.name, node.origin)]
    if names:
        yield "name", [PolicyRule(_ANY, name=_literal(name)) for name in dict.fromkeys(names)]
    yield "module", [PolicyRule(_ANY, module=text)]
    parts = text.split(".")
    for submodules in (False, True):
        for split in range(len(parts) - 1, 0, -1):
            module, op = ".".join(parts[:split]), ".".join(parts[split:])
            yield "module and op", [PolicyRule(_ANY, module=module, submodules=submodules, op=op)]
    yield "op", [PolicyRule(_ANY, op=text)]
    yield "names", [PolicyRule(_ANY, name=text)]
    origins = [n.name for graph in graphs for n in graph.nodes if n.origin and fnmatchcase(n.origin, text)]
    yield "origins", [PolicyRule(_ANY, name=_literal(name)) for name in dict.fromkeys(origins)]


def _literal(name: str) -> str:
    """A glob that matches `name` only."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _nothing(graphs: Sequence[JointGraph], pattern: str, text: str) -> InputError:
    known = _known(graphs)
    near = get_close_matches(text, known, n=3, cutoff=0.6)
    if is_line(text):
        lines = {node.source for g in graphs for node in g.nodes if node.source and _same_file(text, node.source)}
        near = sorted(lines)[:_MOST_LISTED]
    modules = list(dict.fromkeys(layer_pattern(n.module) for g in graphs for n in g.nodes if n.module))
    listed = ", ".join(modules[:_MOST_LISTED]) + (", ..." if len(modules) > _MOST_LISTED else "")
    why = "it is no name, module, op or line of this graph" + (f"; modules are {listed}" if listed else "")
    if any(graph.level == "inductor" for graph in graphs):
        why += "; at level inductor ops stand in pieces (a gelu as mul, erf and add), --level aten has them whole"
    fix = f"near are {', '.join(near)}" if near else "`aotcli partition` lists what is saved, with --flat by name"
    return InputError(f"{pattern!r} matches nothing", why=why, fix=fix)


def _same_file(pattern: str, source: str) -> bool:
    return matches_line(pattern.rpartition(":")[0] + ":*", source)


def _known(graphs: Sequence[JointGraph]) -> list[str]:
    """Everything that could have been meant, layers folded."""
    known: dict[str, None] = {}
    for graph in graphs:
        for node in graph.nodes:
            if node.module:
                known[node.module] = known[layer_pattern(node.module)] = None
            if node.kind is NodeKind.OP:
                short = op_names(graph, node)[2]
                known[short] = None
                if node.module:
                    known[f"{node.module}.{short}"] = None
            if node.origin:
                known[node.origin] = None
            known[node.name] = None
    return list(known)
