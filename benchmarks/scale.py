"""A 70-billion-parameter model on a small machine: 80 Llama layers, 8,192 wide, 4,096 tokens, bfloat16."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from benchmarks.measure import Figure, aotcli, report, spread

MODEL = ("hf:benchmarks/llama.json", "--dtype", "bfloat16", "--set", "batch=1", "--set", "seq=4096")
MOST_RESIDENT = 1.2 * 2**30
MOST_RECORD = 5e6
MOST_SHOW_S = 1.0
ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "llama.aot.json.gz"
        traced = aotcli("trace", *MODEL, "--no-cache", "-o", record)
        size = record.stat().st_size
        shown = [aotcli("show", record).seconds for _ in range(ROUNDS)]
    report(
        [
            Figure(
                "A 70-billion-parameter Llama traces under 1.2 GiB resident",
                f"{traced.peak_bytes / 2**30:.2f} GiB",
                traced.peak_bytes < MOST_RESIDENT,
                f"80 layers of 8,192, 4,096 tokens, bfloat16, fake tensors, level inductor; {traced.seconds:.0f} s",
            ),
            Figure(
                "Its record is under 5 MB compressed",
                f"{size / 1e6:.2f} MB",
                size < MOST_RECORD,
                "`trace -o llama.aot.json.gz`",
            ),
            Figure(
                "`show` of that record takes under a second",
                f"{median(shown):.2f} s",
                median(shown) < MOST_SHOW_S,
                f"{spread(shown)}, {ROUNDS} runs",
            ),
        ]
    )


if __name__ == "__main__":
    main()
