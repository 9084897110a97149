"""Check: a second backward through one forward gives the same gradients, or says that it cannot.

What the first backward freed or drew must not make the second one wrong: with retain_graph the gradients are the
first's, bit by bit (within eager's own spread for a model that is not deterministic), or torch raises.
"""

from __future__ import annotations

import torch

from aotcli.ir.outcome import CheckResult, Outcome
from aotcli.validation.closeness import Expected, compare
from aotcli.validation.evidence import Evidence
from aotcli.validation.subject import Subject, Tensors, kept

CHECK = "second backward"


def check(evidence: Evidence) -> CheckResult:
    """See the module's docstring."""
    if not evidence.reference.eager.step.gradients:
        return CheckResult(CHECK, Outcome.SKIP, "no parameter has a gradient")
    subject = evidence.subject
    args, kwargs = subject.inputs()
    torch.manual_seed(evidence.seed)
    subject.clear_gradients()
    outputs = subject.forward(args, kwargs)
    try:
        subject.backward(outputs, retain_graph=True)
        first = _taken(subject)
        subject.backward(outputs)
        second = _taken(subject)
    except RuntimeError as error:
        text = (str(error).splitlines() or [""])[0]
        return CheckResult(CHECK, Outcome.INFO, "torch refuses retain_graph=True", details=(text,))
    finally:
        subject.clear_gradients()
    again = evidence.reference.again
    eager = evidence.reference.eager.step.gradients
    result = compare(CHECK, second, Expected(first), "gradient")
    if result.outcome is Outcome.FAIL and again is not None:
        drift = compare(CHECK, again.step.gradients, Expected(eager), "gradient")
        if drift.outcome is Outcome.FAIL:
            return CheckResult(CHECK, Outcome.SKIP, "the model is not deterministic")
    if result.outcome is Outcome.PASS:
        return CheckResult(CHECK, Outcome.PASS, "with retain_graph, the gradients of the first")
    return result


def _taken(subject: Subject) -> Tensors:
    found = {name: kept(p.grad) for name, p in subject.parameters.items() if p.grad is not None}
    subject.clear_gradients()
    return found
