"""How fast the command line answers when there is nothing to compute: `--help` against an empty Typer application."""

from __future__ import annotations

import sys
from statistics import median

from benchmarks.measure import Figure, aotcli, interleaved, report, run_process, spread

MOST = 1.5
ROUNDS = 15


def main() -> None:
    times = interleaved(
        {
            "aotcli": lambda: aotcli("--help").seconds,
            "empty": lambda: run_process(sys.executable, "benchmarks/empty_app.py", "--help").seconds,
        },
        ROUNDS,
    )
    ratio = median(times["aotcli"]) / median(times["empty"])
    report(
        [
            Figure(
                f"`aotcli --help` takes at most {MOST} × an empty Typer application",
                f"{ratio:.2f} ×",
                ratio <= MOST,
                f"{spread(times['aotcli'])} against {spread(times['empty'])}, {ROUNDS} runs each",
            )
        ]
    )


if __name__ == "__main__":
    main()
