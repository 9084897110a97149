"""Every error that aotcli raises on purpose.

Each says what happened, why, and what to do about it, and carries the exit code that the command line ends with:
1 findings, 2 usage or input, 3 internal or environment (docs/design.md, section 8).
"""

from __future__ import annotations


class AotcliError(Exception):
    """Base of all errors: `what` happened, `why`, and the exact `fix`."""

    exit_code = 3

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.why:
            parts.append(f"why: {self.why}")
        if self.fix:
            parts.append(f"fix: {self.fix}")
        return "\n".join(parts)


class InputError(AotcliError):
    """The user's input cannot be used: a model file, a record, an option, a path."""

    exit_code = 2


class WorkloadError(InputError):
    """A model file or name cannot be turned into a model and its inputs."""


class CaptureError(InputError):
    """The model could not be captured as a joint graph."""


class RecordError(InputError):
    """A record or plan file is damaged, too new, or not a record at all."""


class ConfigError(InputError):
    """A configuration key or value is not understood."""


class StrategyError(InputError):
    """An unknown strategy or option, or a strategy that cannot plan this graph."""


class PlanImpossibleError(AotcliError):
    """No partition satisfies what the graph's annotations demand; names the annotations."""

    exit_code = 1


class OutputError(InputError):
    """An output path is somebody else's file or cannot be written."""


class EnvironmentProblem(AotcliError):
    """torch or an optional part is missing or of a version that is not supported."""

    exit_code = 3


class VerificationError(AotcliError):
    """A stage handed on a graph or plan that contradicts itself: a fault in aotcli."""

    exit_code = 3
