"""Explanations in words: a headline, and lines of a label and a sentence. Text and Markdown say the same."""

from __future__ import annotations

from aotcli.analysis.layers import UNKNOWN_MODULE
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Explanation, Fact, Quantity, Reader, Weight
from aotcli.render.explain_costs import Lines, chain_texts, flip_lines
from aotcli.render.explain_phrases import MOST, listed, place_text, places_text
from aotcli.render.units import bytes_text, count_text, dtype_text, magnitude_text, percent_text, plural, shape_text

ALREADY_SO = "The plan is so already: no value is treated otherwise."

FATE_WORDS = {
    Fate.SAVED: "saved",
    Fate.KEPT: "kept anyway",
    Fate.RECOMPUTED: "recomputed",
    Fate.FORWARD: "forward only",
    Fate.BACKWARD: "backward only",
    Fate.UNUSED: "unused",
    Fate.ABSENT: "absent",
}


def headline(explanation: Explanation, saved_bytes: int, several_regions: bool) -> str:
    """``mul of h.* ×12: saved, 1152.0 MiB, 18.5 % of all``."""
    times = f" ×{explanation.count}" if explanation.count > 1 else ""
    text = f"{_what(explanation)}{times}: {FATE_WORDS[explanation.fate]}"
    if explanation.dtype:
        text += f", {bytes_text(explanation.total_bytes)}"
    if explanation.fate is Fate.SAVED:
        text += f", {percent_text(explanation.total_bytes, saved_bytes)} % of all"
    return f"{text} ({explanation.region})" if several_regions else text


def _what(explanation: Explanation) -> str:
    what = explanation.place.what
    return (
        what
        if explanation.modules == UNKNOWN_MODULE or _is_placeholder(explanation)
        else f"{what} of {explanation.modules}"
    )


def _is_placeholder(explanation: Explanation) -> bool:
    return explanation.place.target == explanation.place.name


def details(explanation: Explanation, target: str) -> Lines:
    """All that is known of a group of values; `target` is how commands name the model."""
    lines = [*_value(explanation), ("from", _origin(explanation))]
    lines += [("is", note) for note in explanation.notes]
    lines += _by_fate(explanation)
    if explanation.fate is Fate.SAVED:
        lines += _saved(explanation)
    elif explanation.fate is Fate.RECOMPUTED:
        lines += _recomputed(explanation)
    if explanation.flip is not None:
        lines += flip_lines(explanation, explanation.flip, target)
    return lines


def _value(explanation: Explanation) -> Lines:
    if not explanation.dtype:
        return []
    text = f"{shape_text(explanation.shape)} {dtype_text(explanation.dtype)}"
    if explanation.count > 1:
        text += f", {bytes_text(explanation.nbytes)} each"
    other = [name for name in explanation.saved_as if name != explanation.place.name]
    if other:
        text += f"; handed on as {listed(other)}" + (" in the first" if explanation.count > 1 else "")
    return [("value", text)]


def _origin(explanation: Explanation) -> str:
    place = explanation.place
    names = listed(explanation.names) if explanation.count > 1 else place.name
    where = f", {place.source}" if place.source else ""
    return f"{names}{where}" if _is_placeholder(explanation) else f"{place.target}{where} ({names})"


def _by_fate(explanation: Explanation) -> Lines:
    """What there is to say of values about which nothing is decided."""
    lead = places_text(explanation.leads_to)
    readers = [("read by", text) for text in _readers(explanation)] if explanation.readers else []
    if explanation.fate is Fate.KEPT:
        return readers
    if explanation.fate is Fate.FORWARD:
        instead = f"; it gets {lead}, computed from it" if lead else ", nor anything computed from it"
        return [("so", f"the backward does not read it{instead}")]
    if explanation.fate is Fate.BACKWARD:
        return [("reads", lead), *readers] if lead else readers
    return [("so", "nothing reads it, and it is not computed")] if explanation.fate is Fate.UNUSED else []


def _saved(explanation: Explanation) -> Lines:
    lines = [("read by", text) for text in _readers(explanation)]
    reason = explanation.reason
    if reason is not None:
        facts = [fact_text(fact) for fact in explanation.facts]
        rule = reason.rule if reason.rule == reason.text or facts else f"{reason.rule}: {reason.text}"
        lines.append(
            ("rule", "; ".join([f"{rule}: {facts[0]}" if facts else _no_facts(rule, explanation), *facts[1:]]))
        )
    if explanation.without_rule:
        lines.append(("", f"without that rule it would be {explanation.without_rule}"))
    if explanation.weight is not None:
        views = len(explanation.saved_as)
        each = f"{explanation.saved_as[0]}: " if views > 1 else ""
        lines.append(("weight", each + weight_text(explanation.weight)))
    return lines


def _no_facts(rule: str, explanation: Explanation) -> str:
    if explanation.weight is None or not rule.startswith("cut"):
        return rule
    return "cut: no rule bars it from running again; saving it is the lightest way to what the backward reads"


def _recomputed(explanation: Explanation) -> Lines:
    lines = [("read by", text) for text in _readers(explanation)]
    if explanation.chain is not None:
        lines += [("rerun", text) for text in chain_texts(explanation.chain, explanation.count)]
    if not explanation.notes:
        lines.append(("why", "nothing bars it from running again, and what it starts from is there"))
    return lines


def _readers(explanation: Explanation) -> list[str]:
    """Readers that look alike as one, the first few of them."""
    texts: dict[str, int] = {}
    own = {*explanation.names, *explanation.saved_as}
    for reader in explanation.readers:
        text = f"the caller, as the gradient of {reader.gradient_of}" if reader.place.name in own else _reader(reader)
        texts[text] = texts.get(text, 0) + 1
    shown = [text if count == 1 else f"{count} × {text}" for text, count in texts.items()]
    if len(shown) > MOST:
        shown = [*shown[: MOST - 1], f"and {len(shown) - MOST + 1} more"]
    return ["; ".join(shown)] if shown else ["nothing that is left in the backward"]


def _reader(reader: Reader) -> str:
    text = place_text(reader.place)
    if reader.gradient_of is not None:
        text += f" for the gradient of {reader.gradient_of}"
    if reader.via:
        text += f" (through {listed([place.what for place in reader.via])})"
    return f"{text}, {_line(reader.place.source)}" if reader.place.source else text


def _line(source: str | None) -> str:
    return (source or "").rpartition("/")[2]


def fact_text(fact: Fact) -> str:
    """A fact with its amounts in units."""
    return fact.text.format(*(_amount(amount.value, amount.quantity) for amount in fact.amounts))


def _amount(value: int, quantity: Quantity) -> str:
    if quantity is Quantity.BYTES:
        return bytes_text(value)
    return magnitude_text(value, "FLOP") if quantity is Quantity.FLOPS else count_text(value)


def weight_text(weight: Weight) -> str:
    """``110,729,625 = 100,663,296 B × 1.1^1``."""
    if weight.weight is None:
        return "it cannot be in the cut"
    if weight.free:
        return "0: parameters and buffers are in memory anyway"
    text = f"{count_text(weight.weight)} = {count_text(weight.nbytes)} B × 1.1^{weight.exponent}"
    steps = f"{plural(weight.exponent, 'step')} from the backward"
    return f"{text} × 2 ({steps}, fuses with all that reads it)" if weight.doubled else f"{text} ({steps})"
