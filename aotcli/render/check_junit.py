"""A check as JUnit XML, which most CI systems read: a suite for each model, a case for each thing demanded of it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from aotcli.ir.check import Breach, CheckRun, ModelCheck, Structure, Verdict
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_text import render_model_text
from aotcli.render.check_words import breach_text
from aotcli.render.page import Page

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<!-- written by aotcli -->\n'
_WIDTH = 100
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_check_junit(run: CheckRun) -> str:
    """The whole run. Times are seconds."""
    root = ET.Element("testsuites", {"name": "aotcli check"})
    for check in run.models:
        root.append(_suite(check))
    _count(root, run.elapsed_s)
    ET.indent(root)
    return HEAD + ET.tostring(root, encoding="unicode") + "\n"


def _suite(check: ModelCheck) -> ET.Element:
    suite = ET.Element("testsuite", {"name": _text(check.name)})
    facts = {"model": check.model.spec, "torch": check.torch, "device": check.device, "level": check.level}
    properties = ET.SubElement(suite, "properties")
    for name, value in facts.items():
        ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    if check.failure is not None:
        case = _case(suite, check, "check")
        details = "\n".join(part for part in (check.failure.what, check.failure.why, check.failure.fix) if part)
        _problem(case, "error", "error", check.failure.what, details)
    else:
        _cases(suite, check)
    _count(suite, check.elapsed_s)
    output = ET.SubElement(suite, "system-out")
    output.text = _text(render_model_text(check, Page(_WIDTH)))
    return suite


def _cases(suite: ET.Element, check: ModelCheck) -> None:
    if check.verdict is Verdict.NEW:
        _problem(_case(suite, check, "baseline"), "failure", "baseline", "there is no baseline", check.accept_command)
    by_rule: dict[str, list[Breach]] = {}
    for breach in check.breaches:
        by_rule.setdefault(breach.rule, []).append(breach)
    for rule in _rules(check):
        case = _case(suite, check, rule)
        breaches = by_rule.pop(rule, [])
        if breaches:
            texts = [breach_text(breach) for breach in breaches]
            texts += structure_lines(check) if rule == "structure" else []
            _problem(case, "failure", rule, texts[0], "\n".join([*texts, check.accept_command]))


def _rules(check: ModelCheck) -> list[str]:
    """Everything that is demanded of the model, as breaches name it."""
    limits = check.model.limits
    rules: list[str] = []
    for limit in limits.figures:
        rules += [f"{limit.quantity}.max"] if limit.most is not None else []
        rules += [f"{limit.quantity}.growth"] if limit.growth is not None else []
    rules += ["forbid_ops"] if limits.forbid_ops else []
    return rules + (["structure"] if limits.structure is not Structure.IGNORE else [])


def _case(suite: ET.Element, check: ModelCheck, name: str) -> ET.Element:
    attributes = {"classname": _text(f"aotcli.check.{check.name}"), "name": _text(name)}
    return ET.SubElement(suite, "testcase", attributes)


def _problem(case: ET.Element, kind: str, rule: str, message: str, details: str) -> None:
    element = ET.SubElement(case, kind, {"type": rule, "message": _text(message)})
    element.text = _text(details)


def _count(element: ET.Element, seconds: float) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    element.set("failures", str(len(element.findall(".//failure"))))
    element.set("errors", str(len(element.findall(".//error"))))
    element.set("time", f"{seconds:.3f}")


def _text(text: str) -> str:
    """`text` without the characters that XML has no way to write."""
    return _NOT_XML.sub("?", text)
