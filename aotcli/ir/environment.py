"""What is installed and which devices there are: the result of `aotcli doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Something that aotcli needs or can use. `version` is None where it is missing; `fix` says how to get it, and
    is empty where all is well. `required` parts that are missing or unfit make the environment unusable."""

    name: str
    version: str | None
    required: bool
    use: str
    fix: str = ""

    @property
    def ok(self) -> bool:
        return self.version is not None and not self.fix


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device: usable, or the reason why it is not."""

    kind: str
    usable: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Doctor:
    """The environment, part by part."""

    parts: tuple[Part, ...]
    devices: tuple[Device, ...]

    @property
    def ok(self) -> bool:
        return all(part.ok for part in self.parts if part.required)
