"""Check: buffers, parameters and inputs hold after the step what they hold after eager's."""

from __future__ import annotations

from dataclasses import replace

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.attribution import attributed
from aotcli.validation.closeness import compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import Tensors, state_of

CHECK = "buffers and inputs"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring. What neither changes is compared too: a step must not write where eager does not."""
    whole = evidence.reference.expected(state_of)
    changed = evidence.reference.changed | _changed(evidence)
    if not changed:
        return CheckResult(CHECK, Outcome.SKIP, "the step changes nothing in place")
    expected = replace(whole, eager=_only(whole.eager, changed))
    found = _only(evidence.step.state, changed)
    result = compare(CHECK, found, expected, "tensor")
    return attributed(evidence, result, found, expected, lambda run: _only(run.step.state, changed))


def _only(tensors: Tensors, names: frozenset[str]) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if name in names}


def _changed(evidence: Evidence) -> frozenset[str]:
    """What the compiled step has changed."""
    return evidence.subject.changed(evidence.step)
