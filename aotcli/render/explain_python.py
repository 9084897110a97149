"""Selective checkpoints as a Python module: what a training script imports instead of naming ops by hand."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from aotcli.analysis.explain_checkpoint import CheckpointedModules, CheckpointPolicy, OpPolicy
from aotcli.ir.policy import Action
from aotcli.ir.trace import Trace
from aotcli.render.page import plain

_WIDTH = 100
_INDENT = "    "
_MOST_NUMBERS = 3
_NAMES = {Action.SAVE: "SAVE", Action.RECOMPUTE: "RECOMPUTE"}

_USE = """Use: `apply_policy(model)`, then torch.compile(model). Without compilation, PyTorch saves the results of all
ops that the policy does not recompute, those that no gradient needs among them."""

_CODE = '''


class Policy:
    """The policy function of one run of a module: ops whose calls differ are counted."""

    def __init__(self, number: int) -> None:
        self._ops = REGIONS[number][1]
        self._calls: dict[Any, int] = {}

    def __call__(self, context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        policy = self._ops.get(op, REST)
        if isinstance(policy, dict):
            key = op, context.is_recompute
            call = self._calls.get(key, 0)
            self._calls[key] = call + 1
            policy = next((each for each, calls in policy.items() if call in calls), REST)
        return policy


def contexts(number: int) -> Any:
    return create_selective_checkpoint_contexts(Policy(number))


def apply_policy(model: nn.Module) -> nn.Module:
    """Checkpoint the modules of REGIONS, in place. Call it once, before torch.compile; parameters keep their names."""
    for number, (paths, _) in enumerate(REGIONS):
        for path in paths:
            _checkpoint(model.get_submodule(path), number)
    return model


def _checkpoint(module: nn.Module, number: int) -> None:
    original = type(module)
    context_fn = partial(contexts, number)

    class Checkpointed(original):  # type: ignore[misc, valid-type]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return checkpoint(super().forward, *args, use_reentrant=False, context_fn=context_fn, **kwargs)

    Checkpointed.__name__ = original.__name__
    Checkpointed.__qualname__ = original.__qualname__
    module.__class__ = Checkpointed
'''


def render_checkpoint_python(trace: Trace, policy: CheckpointPolicy) -> str:
    """A module with `apply_policy(model)`; what checkpointing cannot say stands in its docstring."""
    lines = [
        *_docstring(trace, policy),
        "",
        "from __future__ import annotations",
        "",
        "from functools import partial",
        "from typing import Any",
        "",
        "from torch import nn, ops",
        "from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts",
        "",
        "SAVE = CheckpointPolicy.MUST_SAVE",
        "RECOMPUTE = CheckpointPolicy.MUST_RECOMPUTE",
        "REST = CheckpointPolicy.PREFER_SAVE  # the partitioner decides",
        "",
        "# Modules, and what becomes of their ops: of all calls of an op, or of single calls, counted from 0.",
        "REGIONS: Any = (",
        *(line for modules in policy.modules for line in _region(modules)),
        ")",
    ]
    return "\n".join(lines) + _CODE


def _docstring(trace: Trace, policy: CheckpointPolicy) -> Iterator[str]:
    yield f'"""Selective activation checkpointing of {_words(trace.model.name)}: what these rules of aotcli ask for.'
    yield ""
    for rule in policy.rules:
        yield f"    {_words(f'{rule.action} {rule.conditions}')}"
    yield ""
    yield from textwrap.wrap(_USE, _WIDTH)
    for title, texts in (
        ("What selective checkpointing cannot say, and is left out:", policy.limits),
        ("What torch.compile will plan otherwise than aotcli's strategy `policy`:", policy.differences),
    ):
        if texts:
            yield ""
            yield title
            for text in texts:
                yield from textwrap.wrap(_words(text), _WIDTH, initial_indent="* ", subsequent_indent="  ")
    yield '"""'


def _words(text: str) -> str:
    """Words from elsewhere, as they may stand in a docstring."""
    return plain(text).replace("\\", "/").replace('"""', "'''")


def _region(modules: CheckpointedModules) -> Iterator[str]:
    yield f"{_INDENT}("
    paths = ", ".join(json.dumps(path) for path in modules.paths)
    text = f"({paths},)," if len(modules.paths) == 1 else f"({paths}),"
    # One column more for what follows the first line: the paths stand inside a parenthesis.
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=_INDENT * 2,
        subsequent_indent=_INDENT * 2 + " ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield f"{_INDENT * 2}{{"
    for policy in modules.ops:
        yield from _op(policy)
    yield f"{_INDENT * 2}}},"
    yield f"{_INDENT}),"


def _op(policy: OpPolicy) -> Iterator[str]:
    key = f"{_INDENT * 3}ops.{policy.op}: "
    if policy.every is not None:
        yield f"{key}{_NAMES[policy.every]},"
        return
    parts = ", ".join(f"{_NAMES[action]}: {_numbers(policy, action)}" for action in Action if _calls(policy, action))
    yield from textwrap.wrap(f"{key}{{{parts}}},", _WIDTH, subsequent_indent=_INDENT * 4, break_long_words=False)


def _calls(policy: OpPolicy, action: Action) -> list[int]:
    return [number for number, asked in policy.calls if asked is action]


def _numbers(policy: OpPolicy, action: Action) -> str:
    """Numbers of calls as a tuple, or as a range where they are one."""
    numbers = _calls(policy, action)
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if len(numbers) > _MOST_NUMBERS and numbers == list(range(numbers[0], numbers[-1] + 1, step)):
        return f"range({numbers[0]}, {numbers[-1] + 1}{f', {step}' if step > 1 else ''})"
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"
