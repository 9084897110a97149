"""The step that is compiled: the user's model, and the loss where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class StepModule(nn.Module):
    """`model`'s output, or its loss.

    `loss` maps the output to a scalar; with `loss_in_output` the output carries it. `autocast` is the dtype to
    autocast to on `device_type`, or None.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any], Any] | None,
        *,
        loss_in_output: bool,
        autocast: torch.dtype | None,
        device_type: str,
    ) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        self.loss_in_output = loss_in_output
        self.autocast = autocast
        self.device_type = device_type
        if isinstance(model, nn.Module):
            self.training = model.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.autocast is None:
            return self._step(args, kwargs)
        with torch.autocast(self.device_type, dtype=self.autocast):
            return self._step(args, kwargs)

    def _step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output = self.model(*args, **kwargs)
        if self.loss is not None:
            return self.loss(output)
        return loss_of(output) if self.loss_in_output else output


def loss_of(output: Any) -> Any:
    """The loss that an output carries: attribute ``loss``, or the key."""
    return output["loss"] if isinstance(output, dict) else output.loss


def carries_loss(output: Any) -> bool:
    """Whether an output has a loss of its own, as the outputs of transformers' models do when labels are given."""
    if isinstance(output, Tensor):
        return False
    if isinstance(output, dict):
        return isinstance(output.get("loss"), Tensor)
    return isinstance(getattr(output, "loss", None), Tensor)
