"""Check: buffers, parameters and inputs hold after the step what they hold after eager's."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.closeness import Expected, compare
from aotcli.validation.evidence import Evidence

CHECK = "buffers and inputs"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring. What neither changes is compared too: a step must not write where eager does not."""
    whole = evidence.reference.expected("state")
    changed = evidence.reference.changed | _changed(evidence)
    if not changed:
        return CheckResult(CHECK, Outcome.SKIP, "the step changes nothing in place")
    expected = Expected(
        {name: whole.eager[name] for name in whole.eager if name in changed}, whole.precise, whole.again
    )
    found = {name: tensor for name, tensor in evidence.step.state.items() if name in changed}
    return compare(CHECK, found, expected, "tensor")


def _changed(evidence: Evidence) -> frozenset[str]:
    """What the compiled step has changed."""
    return evidence.subject.changed(evidence.step)
