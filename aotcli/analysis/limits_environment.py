"""In what a baseline was made otherwise: the environment, which a project does not choose, and the capture settings,
which it does."""

from __future__ import annotations

from aotcli.ir.difference import EnvironmentChange
from aotcli.ir.trace import Trace

_NONE = "none"


def environment_changes(before: Trace, now: Trace) -> tuple[EnvironmentChange, ...]:
    """torch (without the local part of its version), level, device, and what kind of device."""
    return _changes(_environment_of(before), _environment_of(now))


def setting_changes(before: Trace, now: Trace) -> tuple[EnvironmentChange, ...]:
    """Capture settings, the mode, and whether tensors were fake."""
    return _changes(_settings_of(before), _settings_of(now))


def _environment_of(trace: Trace) -> dict[str, str]:
    environment = trace.environment
    return {
        "torch": environment.torch.partition("+")[0],
        "level": trace.settings.level,
        "device": environment.device,
        "device name": environment.device_name or _NONE,
        "CUDA": environment.cuda if environment.cuda and environment.device != "cpu" else _NONE,
    }


def _settings_of(trace: Trace) -> dict[str, str]:
    settings = trace.settings
    return {
        "dtype": settings.dtype or "the model's own",
        "autocast": settings.autocast or _NONE,
        "dynamic": "yes" if settings.dynamic else "no",
        "seed": str(settings.seed),
        "inputs": ", ".join(settings.inputs) or "the model's own",
        "set": ", ".join(f"{key}={value}" for key, value in settings.overrides) or "nothing",
        "mode": "train" if trace.train else "eval",
        "loss": "inside" if trace.loss else "not inside",
        "tensors": trace.tensors,
    }


def _changes(before: dict[str, str], now: dict[str, str]) -> tuple[EnvironmentChange, ...]:
    return tuple(EnvironmentChange(what, before[what], now[what]) for what in now if before[what] != now[what])
