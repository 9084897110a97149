"""A few steps of an optimizer."""

from __future__ import annotations

import torch

from aotcli.validation.subject import Subject, Tensors, kept

_LEARNING_RATE = 1e-2
_MOMENTUM = 0.9


def train(subject: Subject, seed: int, steps: int) -> Tensors:
    """The parameters after `steps` steps of SGD with momentum, the first one with the gradients that are there.

    Empty where no parameter has a gradient.
    """
    parameters = [p for p in subject.parameters.values() if p.requires_grad]
    if all(p.grad is None for p in parameters):
        return {}
    optimizer = torch.optim.SGD(parameters, lr=_LEARNING_RATE, momentum=_MOMENTUM)
    for step in range(steps):
        if step:
            optimizer.zero_grad(set_to_none=True)
            subject.plain_step(seed + step)
        optimizer.step()
    return {name: kept(p) for name, p in subject.parameters.items() if p.requires_grad}
