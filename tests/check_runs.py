"""Results of checks, made by hand: one of each kind, with the figures of a GPT whose attention was rewritten."""

from __future__ import annotations

from fractions import Fraction

from aotcli.ir.check import (
    CheckedModel,
    CheckRun,
    Contributor,
    Failure,
    FigureBreach,
    Figures,
    Gain,
    Limit,
    Limits,
    ModelCheck,
    OpBreach,
    Quantity,
    Structure,
    StructureBreach,
    Tolerance,
)
from aotcli.ir.difference import EnvironmentChange

MIB = 1 << 20
PERCENT = Tolerance(share=Fraction(1, 100))
LIMITS = Limits(
    (Limit(Quantity.SAVED, 1 << 40, PERCENT), Limit(Quantity.PEAK, growth=PERCENT)),
    ("aten.bmm",),
    Structure.EXACT,
)
ROWS = (
    Contributor(4608 * MIB, 12, "h.*", "attention scores", (8, 12, 1024, 1024), "float32", "gpt.py:14"),
    Contributor(12 * MIB, 12, "h.*", "mask logical_and", (1024, 1024), "bool", "gpt.py:14"),
    Contributor(-4718592, 12, "h.*", "attention lse", (8, 12, 1024), "float32", "gpt.py:12", gone=True),
)
PLACES = (Contributor(24, 24, "h.*", "bmm", (96, 1024, 64), "float32", "gpt.py:14"),)
TRACED = {"torch": "2.13.0", "device": "cpu", "level": "inductor"}


def model(name: str, limits: Limits = LIMITS) -> CheckedModel:
    return CheckedModel(name, f"sample_models/{name}.py", f"sample_models/{name}.py", limits=limits)


def ok() -> ModelCheck:
    figures = Figures(589824, 2 * MIB, 0)
    return ModelCheck(
        model("mlp"), ".aotcli/mlp.aot.json", figures, figures, structure=Structure.EXACT, elapsed_s=2.5, **TRACED
    )


def failed() -> ModelCheck:
    before = Figures(6537781252, 9831456772, 0)
    saved = before.saved_bytes + sum(row.amount for row in ROWS)
    now = Figures(saved, before.peak_bytes + 4838400000, 0)
    peak = FigureBreach(
        Quantity.PEAK, now.peak_bytes, PERCENT.above(before.peak_bytes), before.peak_bytes, PERCENT, ROWS[:1]
    )
    return ModelCheck(
        model("gpt"),
        ".aotcli/gpt.aot.json",
        now,
        before,
        breaches=(
            FigureBreach(Quantity.SAVED, saved, PERCENT.above(before.saved_bytes), before.saved_bytes, PERCENT, ROWS),
            peak,
            OpBreach("aten.bmm", "aten.bmm.default", 24, 0, PLACES),
            StructureBreach(Structure.EXACT, Structure.IGNORE, "bmm in h.0 is aten.bmm.default, and was aten.mm"),
        ),
        structure=Structure.IGNORE,
        reason="wider",
        written=".aotcli/gpt.new.aot.json",
        accept_command='aotcli accept gpt --reason "why"',
        look_command="aotcli diff .aotcli/gpt.aot.json .aotcli/gpt.new.aot.json",
        elapsed_s=11.2,
        **TRACED,
    )


def new() -> ModelCheck:
    return ModelCheck(
        model("unet"),
        ".aotcli/unet.aot.json",
        Figures(90 * MIB, 140 * MIB, 12_000_000),
        written=".aotcli/unet.new.aot.json",
        accept_command="aotcli accept unet",
        look_command="aotcli partition .aotcli/unet.new.aot.json",
        elapsed_s=3.0,
        **TRACED,
    )


def better() -> ModelCheck:
    before, now = Figures(100 * MIB, 200 * MIB, 0), Figures(60 * MIB, 200 * MIB, 0)
    return ModelCheck(
        model("resnet"),
        ".aotcli/resnet.aot.json",
        now,
        before,
        gains=(Gain(Quantity.SAVED, before.saved_bytes, now.saved_bytes),),
        environment=(EnvironmentChange("torch", "2.12.0", "2.13.0"),),
        structure=Structure.IGNORE,
        notes=("the graph differs, which another environment may do: not enforced (36 nodes instead of 34)",),
        replanned=Figures(98 * MIB, 200 * MIB, 0),
        written=".aotcli/resnet.new.aot.json",
        accept_command='aotcli accept resnet --reason "why"',
        look_command="aotcli diff .aotcli/resnet.aot.json .aotcli/resnet.new.aot.json",
        elapsed_s=4.0,
        **TRACED,
    )


def error() -> ModelCheck:
    failure = Failure(
        "the model in lost.py cannot be built: it needs a file",
        "FileNotFoundError: weights.pt",
        "correct that, then\naotcli check lost",
        2,
    )
    return ModelCheck(model("lost"), ".aotcli/lost.aot.json", failure=failure, elapsed_s=0.5)


def all_kinds() -> CheckRun:
    return CheckRun((ok(), failed(), new(), better(), error()), (".aotcli/old.aot.json",))
