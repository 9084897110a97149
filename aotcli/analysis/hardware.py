"""What a device can do in a second, for estimates: peak operations by dtype, memory bandwidth, the cost of a launch.

Figures of the vendors' data sheets, dense, without sparsity: NVIDIA A100 80GB SXM (2020), H100 SXM (2022), H200 SXM
(2023). `cpu` is a small server share, not a measurement: its ratios matter, not its seconds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from aotcli.errors import InputError


@dataclass(frozen=True, slots=True)
class Hardware:
    """One device: operations per second by dtype name, bytes per second, seconds that starting one kernel takes."""

    name: str
    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    launch_s: float

    def flops_of(self, dtype: str) -> float:
        """Peak of a dtype; that of float32 where the profile does not name it."""
        return self.flops_per_s.get(dtype, self.flops_per_s["float32"])


def _gpu(name: str, single: float, half: float, bandwidth: float) -> Hardware:
    return Hardware(name, {"float32": single, "float16": half, "bfloat16": half}, bandwidth, 4e-6)


PROFILES: Mapping[str, Hardware] = {
    "a100": _gpu("a100", 19.5e12, 312e12, 2.039e12),
    "cpu": Hardware("cpu", {"float32": 400e9}, 40e9, 2e-6),
    "h100": _gpu("h100", 67e12, 989e12, 3.35e12),
    "h200": _gpu("h200", 67e12, 989e12, 4.8e12),
}
_BY_DEVICE = {"cpu": "cpu", "cuda": "h100"}
_FIELDS = ("bytes_per_s", "launch_s", "flops_per_s")


def find_hardware(given: str, device_type: str) -> Hardware:
    """A profile by name, or of a TOML file; where none is given, the usual one of the device type.

    Raises InputError for an unknown name, and for a file that lacks a field or cannot be read.
    """
    if given.endswith(".toml"):
        return _read(Path(given))
    name = given or _BY_DEVICE.get(device_type, "cpu")
    if name not in PROFILES:
        near = get_close_matches(name, PROFILES, n=1)
        raise InputError(
            f"there is no hardware profile {name!r}",
            why=f"known are {', '.join(PROFILES)}; FILE.toml describes another",
            fix=f"did you mean {near[0]!r}?" if near else "--hardware h100",
        )
    return PROFILES[name]


def _read(path: Path) -> Hardware:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror or str(error), fix="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML", why=str(error), fix=_example()) from None
    missing = [name for name in _FIELDS if name not in table]
    unknown = [name for name in table if name not in _FIELDS]
    if missing or unknown:
        what = f"lacks {missing[0]}" if missing else f"has an unknown key {unknown[0]!r}"
        raise InputError(f"{path} {what}", why=f"a profile has {', '.join(_FIELDS)}", fix=_example())
    rates = cast("dict[str, object]", table["flops_per_s"] if isinstance(table["flops_per_s"], dict) else {})
    figures = {name: _positive(path, f"flops_per_s.{name}", value) for name, value in rates.items()}
    if "float32" not in figures:
        raise InputError(f"{path} lacks flops_per_s.float32", why="every other dtype falls back to it", fix=_example())
    bandwidth = _positive(path, "bytes_per_s", table["bytes_per_s"])
    return Hardware(path.stem, figures, bandwidth, _positive(path, "launch_s", table["launch_s"]))


def _positive(path: Path, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InputError(f"{path}: {name} is {value!r}", why="it is a number above 0", fix=_example())
    return float(value)


def _example() -> str:
    return "write bytes_per_s = 3.35e12, launch_s = 4e-6, flops_per_s = { float32 = 67e12, bfloat16 = 989e12 }"
