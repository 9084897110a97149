"""On a GPU: peak memory and time of a training step under save-all, mincut and PyTorch's own, with both backends.

`make bench-cuda` prints a Markdown record with date, device, driver and torch, to be kept in benchmarks/results. Peak
is what `torch.cuda.max_memory_allocated` counts above parameters, buffers and inputs, from the start of the step to the
end of its backward. Without a GPU it says so and ends with 0: no figure is made up.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import torch

from aotcli.api.validation import ValidationResult, validate
from aotcli.ir.trace import CaptureSettings

STRATEGIES = ("save-all", "mincut", "torch-mincut")
BACKENDS = ("aot_eager", "inductor")
WORKLOADS: tuple[tuple[str, str, dict[str, str], str | None], ...] = (
    ("GPT, 12 layers, bf16", "sample_models/gpt.py", {"layers": "12"}, "bfloat16"),
    ("GPT, 24 layers, bf16", "sample_models/gpt.py", {"layers": "24"}, "bfloat16"),
    ("ResNet-50", "sample_models/resnet.py", {}, None),
    ("U-Net", "sample_models/unet.py", {"batch": "16", "size": "256"}, None),
)


def driver() -> str:
    """The driver's version as nvidia-smi tells it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown driver"


def run(spec: str, overrides: dict[str, str], dtype: str | None, backend: str) -> ValidationResult:
    """All strategies on one workload."""
    settings = CaptureSettings(device="cuda", dtype=dtype, overrides=tuple(overrides.items()))
    return validate(spec, strategy=STRATEGIES, settings=settings, backend=backend, steps=1)


def main() -> int:
    if not torch.cuda.is_available():
        print("bench-cuda: skipped, torch sees no CUDA device (`aotcli doctor` says why)")
        return 0
    print(f"# CUDA steps, {datetime.now(UTC):%Y-%m-%d}\n")
    print(f"{torch.cuda.get_device_name()} · driver {driver()} · torch {torch.__version__}\n")
    failed = False
    for name, spec, overrides, dtype in WORKLOADS:
        for backend in BACKENDS:
            result = run(spec, overrides, dtype, backend)
            failed |= result.exit_code != 0
            print(f"## {name}, {backend}\n\n{result.markdown()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
