"""`python -m benchmarks [NAME …]` runs all benchmarks, or those named, and writes benchmarks/RESULTS.md.

Each runs in a process of its own, one after another. The figures of those that are not run are kept as they were
measured last (benchmarks/results/figures.json). Ends with 1 where a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict

from benchmarks.machine import describe_machine
from benchmarks.measure import ROOT, Figure

BENCHMARKS = (
    "startup",
    "trace_cost",
    "mincut_cost",
    "partition_cost",
    "front_cost",
    "scale",
    "diff_cost",
    "draw_quality",
    "report_open",
    "step_time",
)
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
FIGURES = ROOT / "benchmarks" / "results" / "figures.json"


def run(name: str) -> list[Figure]:
    """The figures of one benchmark."""
    print(f"{name} …", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures = [Figure(**each) for each in json.loads(result.stdout.splitlines()[-1])]
    for figure in figures:
        print(f"  {'ok  ' if figure.kept else 'FAIL'} {figure.promise}: {figure.measured}", file=sys.stderr)
    return figures


def render(figures: list[Figure]) -> str:
    """RESULTS.md."""
    rows = [f"| {each.promise} | {each.measured} | {'yes' if each.kept else '**no**'} |" for each in figures]
    details = [f"* {each.promise}: {each.detail}." for each in figures]
    return "\n".join(
        [
            "# What aotcli promises about time and size, measured",
            "",
            "Written by `make bench`. A ratio compares two things that took turns in one run, by their medians; ranges",
            "are the fastest and the slowest turn; what a trace costs is the median of the ratios within a turn.",
            "Seconds are processor time, and wall time for whole commands.",
            "",
            *(f"* {line}" for line in describe_machine()),
            "",
            "| promise | measured | kept |",
            "|---|---|---|",
            *rows,
            "",
            *details,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or BENCHMARKS
    measured = {name: run(name) for name in names}
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    known |= {name: [asdict(figure) for figure in figures] for name, figures in measured.items()}
    FIGURES.write_text(json.dumps({name: known[name] for name in BENCHMARKS if name in known}, indent=1) + "\n")
    RESULTS.write_text(render([Figure(**each) for name in BENCHMARKS for each in known.get(name, ())]), "utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)}", file=sys.stderr)
    return 0 if all(figure.kept for figures in measured.values() for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
