"""What the whole front of saved bytes against recomputing takes, beside one budget of PyTorch's own.

Ours goes from the raw record to every corner with its proof; theirs solves one `activation_memory_budget` and splits,
as AOTAutograd calls it. A second figure is how near the plans between corners come to the bound.
"""

from __future__ import annotations

from statistics import median

from aotcli.analysis.mixing import fill
from aotcli.capture.torch_private_split import min_cut_partition_function
from aotcli.capture.trace import capture
from aotcli.capture.workload import load_workload
from aotcli.ir.trace import CaptureSettings
from aotcli.strategies.budget import Budget
from benchmarks.measure import Figure, elapsed, interleaved, report, spread
from benchmarks.partition_cost import time_partition

LARGE = (("layers", "66"), ("width", "128"), ("batch", "2"), ("seq", "64"), ("vocab", "1000"))
ROUNDS = 3
SHARES = tuple(share / 20 for share in range(1, 20))
SAMPLES = ("gpt", "resnet", "unet", "attention")


def time_of_front() -> Figure:
    """The front of a GPT of 66 layers against PyTorch's budget of 0.5."""
    settings = CaptureSettings(overrides=LARGE)
    (live,) = capture(load_workload("sample_models/gpt.py", settings), settings).regions
    strategy = Budget(cost="flops")
    corners = len(strategy.pose(live.graph).front.corners)
    times = interleaved(
        {
            "ours": lambda: elapsed(lambda: strategy.pose(live.graph)),
            "theirs": lambda: time_partition(live, min_cut_partition_function(0.5)),
        },
        ROUNDS,
    )
    ratio = median(times["ours"]) / median(times["theirs"])
    return Figure(
        "The whole front takes less than half the time in which PyTorch solves one budget",
        f"{ratio:.2f} of its time",
        ratio < 0.5,
        f"{spread(times['ours'])} for {corners} corners against {spread(times['theirs'])} for a budget of 0.5; GPT of"
        f" 66 layers, {len(live.graph.nodes):,} joint nodes, {ROUNDS} turns each",
    )


def gaps(sample: str) -> list[float]:
    """How far above the bound the cost of a plan is, at budgets of 5 % to 95 % of the front's range."""
    settings = CaptureSettings()
    (live,) = capture(load_workload(f"sample_models/{sample}.py", settings), settings).regions
    budgeting = Budget(cost="flops").pose(live.graph)
    front = budgeting.front
    most, least = front.corners[0].nbytes, front.corners[-1].nbytes
    found: list[float] = []
    for share in SHARES:
        budget = least + int(share * (most - least))
        choice, bound = fill(budgeting.tradeoff, front, budget), front.least_cost(budget)
        assert choice is not None
        if bound:
            found.append(float(choice.cost / bound - 1))
    return found


def quality() -> Figure:
    """The gaps of plans on the samples."""
    each = {sample: gaps(sample) for sample in SAMPLES}
    every = sorted(gap for found in each.values() for gap in found)
    middle = median(every)
    worst = ", ".join(f"{sample} median {median(found):.2%}, worst {max(found):.1%}" for sample, found in each.items())
    return Figure(
        f"Plans at {len(SHARES)} budgets cost within 1 % of the lower bound, median over samples",
        f"{middle:.2%}",
        middle <= 0.01,
        worst,
    )


def main() -> None:
    report([time_of_front(), quality()])


if __name__ == "__main__":
    main()
