"""`python -m benchmarks.zoo [NAME …]`: small models of other people's making through trace, partition and validate.

Each is built from its configuration with random weights, in a process of its own, and goes through:

* stock: one training step under `torch.compile(backend="aot_eager")`, without aotcli: what PyTorch itself can do;
* trace at both levels, and a plan by every strategy that needs no file;
* validate with the backend aot_eager, under the strategies of `VALIDATED`.

What stock PyTorch cannot do is said and is no failure; anything else that fails is one. Writes benchmarks/ZOO.md where
all models are run; ends with 1 where one failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.measure import ROOT

PAGE = ROOT / "benchmarks" / "ZOO.md"
SECONDS_PER_MODEL = 1800
VALIDATED = ("save-all", "mincut", "recompute-all")
_TEXT = "vocab_size=500 hidden_size=64 num_hidden_layers=2 num_attention_heads=4 seq=32"
_GATED = f"{_TEXT} intermediate_size=128 num_key_value_heads=2"
_IMAGES = "hidden_size=64 num_hidden_layers=2 num_attention_heads=4 intermediate_size=128 image_size=32 patch_size=8"

TRANSFORMERS: dict[str, str] = {
    "llama": _GATED,
    "mistral": _GATED,
    "qwen2": _GATED,
    "gemma2": f"{_GATED} head_dim=16",
    "phi": f"{_TEXT} intermediate_size=128",
    "mixtral": f"{_GATED} num_local_experts=4",
    "gpt2": _TEXT,
    "gpt_neox": f"{_TEXT} intermediate_size=128",
    "opt": f"{_TEXT} ffn_dim=128 word_embed_proj_dim=64",
    "bloom": _TEXT,
    "bert": f"{_TEXT} intermediate_size=128",
    "roberta": f"{_TEXT} intermediate_size=128",
    "distilbert": "vocab_size=500 dim=64 n_layers=2 n_heads=4 hidden_dim=128 seq=32",
    "deberta-v2": f"{_TEXT} intermediate_size=128",
    "t5": "vocab_size=500 d_model=64 d_kv=16 d_ff=128 num_layers=2 num_heads=4 seq=32",
    "bart": "vocab_size=500 d_model=64 encoder_layers=2 decoder_layers=2 encoder_attention_heads=4 "
    "decoder_attention_heads=4 encoder_ffn_dim=128 decoder_ffn_dim=128 seq=32",
    "mamba": "vocab_size=500 hidden_size=64 num_hidden_layers=2 seq=16",
    "vit": _IMAGES,
    "convnext": "depths=[1,1,2,1] hidden_sizes=[16,32,64,64] image_size=64",
    "wav2vec2": "hidden_size=64 num_hidden_layers=2 num_attention_heads=4 intermediate_size=128 "
    "num_conv_pos_embeddings=16 num_conv_pos_embedding_groups=4",
    "whisper": "d_model=64 encoder_layers=2 decoder_layers=2 encoder_attention_heads=4 decoder_attention_heads=4 "
    "encoder_ffn_dim=128 decoder_ffn_dim=128 max_source_positions=50",
}
TIMM: dict[str, str] = {
    "resnet18": "size=64 num_classes=10",
    "resnext26ts": "size=64 num_classes=10",
    "vit_tiny_patch16_224": "size=32 num_classes=10 depth=2",
    "deit_tiny_patch16_224": "size=32 num_classes=10 depth=2",
    "convnext_atto": "size=64 num_classes=10",
    "efficientnet_b0": "size=64 num_classes=10",
    "mobilenetv3_small_050": "size=64 num_classes=10",
    "regnetx_002": "size=64 num_classes=10",
    "densenet121": "size=64 num_classes=10",
    "mixer_s32_224": "num_classes=10",
    "swin_tiny_patch4_window7_224": "num_classes=10 depths=(1,1,1,1)",
    "ghostnet_050": "size=64 num_classes=10",
}
SPECS: dict[str, str] = {f"hf:{name}": sets for name, sets in TRANSFORMERS.items()} | {
    f"timm:{name}": sets for name, sets in TIMM.items()
}


@dataclass(frozen=True)
class Row:
    """What became of one model. `failed` says which stages failed and how; `stock` why PyTorch itself cannot, if so."""

    spec: str
    regions: int = 0
    nodes: int = 0
    tensors: str = ""
    plans: int = 0
    passed: int = 0
    seconds: float = 0.0
    stock: str = ""
    failed: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> str:
        if self.failed:
            return "**failed**"
        return "not in PyTorch" if self.stock else "passed"


def first_line(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


def stock_step(workload: Any, settings: Any) -> str:
    """One step of the model under stock PyTorch; why not, where it cannot."""
    import torch

    from aotcli.capture.workload import build
    from aotcli.validation.subject import Original, Subject

    try:
        built = build(workload, settings, fake=False)
        subject = Subject(Original(built), lambda step: torch.compile(step, backend="aot_eager"))
        subject.plain_step(0)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is PyTorch's or the model's own
        return first_line(error)
    finally:
        torch._dynamo.reset()
    return ""


def run_one(spec: str, sets: str) -> Row:
    """One model through all stages."""
    from aotcli.capture.trace import capture
    from aotcli.capture.workload import load_workload
    from aotcli.ir.trace import CaptureSettings
    from aotcli.strategies import load_strategy, strategy_class, strategy_names

    overrides = tuple((key, value) for key, _, value in (each.partition("=") for each in sets.split()))
    start = time.perf_counter()
    failed: list[str] = []
    found: dict[str, Any] = {}
    settings = CaptureSettings(level="aten", overrides=overrides)
    stock = stock_step(load_workload(spec, settings), settings)
    names = [name for name in strategy_names() if strategy_class(name).argument is None]
    plans = 0
    for level in ("aten", "inductor"):
        settings = CaptureSettings(level=level, overrides=overrides)
        try:
            captured = capture(load_workload(spec, settings), settings)
        except Exception as error:  # noqa: BLE001 - a row of the table
            failed.append(f"trace {level}: {first_line(error)}")
            continue
        regions = [region for region in captured.regions if region.graph.has_backward]
        found = {
            "regions": len(captured.regions),
            "nodes": sum(len(region.graph.nodes) for region in captured.regions),
            "tensors": captured.trace.tensors,
        }
        for name in names:
            try:
                for region in regions:
                    load_strategy(name).plan(region.graph, region)
                plans += 1
            except Exception as error:  # noqa: BLE001
                failed.append(f"{name} {level}: {first_line(error)}")
    passed = 0
    if not stock:
        passed = validated(spec, overrides, failed)
    return Row(spec, **found, plans=plans, passed=passed, seconds=time.perf_counter() - start, stock=stock,
               failed=tuple(failed))  # fmt: skip


def validated(spec: str, overrides: tuple[tuple[str, str], ...], failed: list[str]) -> int:
    """How many strategies `validate` passes; what it finds wrong is added to `failed`."""
    from aotcli.api.validation import validate
    from aotcli.ir.outcome import Outcome
    from aotcli.ir.trace import CaptureSettings

    try:
        result = validate(
            spec, strategy=VALIDATED, steps=1, timing=False, settings=CaptureSettings(overrides=overrides)
        )
    except Exception as error:  # noqa: BLE001
        failed.append(f"validate: {first_line(error)}")
        return 0
    for strategy in result.validation.strategies:
        failed += [
            " ".join((f"{strategy.label}: {check.check}: {check.reason}", *check.details[:1]))
            for check in strategy.checks
            if check.outcome is Outcome.FAIL
        ]
    return sum(strategy.proven for strategy in result.validation.strategies)


def in_a_process(spec: str, sets: str) -> Row:
    """`run_one` in a process of its own, within a time."""
    command = [sys.executable, "-m", "benchmarks.zoo", "--one", spec, sets]
    try:
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS_PER_MODEL
        )
    except subprocess.TimeoutExpired:
        return Row(spec, seconds=SECONDS_PER_MODEL, failed=(f"not done after {SECONDS_PER_MODEL} s",))
    lines = result.stdout.splitlines()
    if result.returncode or not lines:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1]
        return Row(spec, failed=(f"ended with {result.returncode}: {last[:200]}",))
    return Row(**json.loads(lines[-1]))


def render(rows: list[Row]) -> str:
    """ZOO.md."""
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("passed", "not in PyTorch")}
    summary = f"{len(rows)} models: {count['passed']} passed, {count['not in PyTorch']} beyond PyTorch itself, "
    summary += f"{len(rows) - sum(count.values())} failed."
    lines = [
        "# Models of other people's making",
        "",
        "Written by `make zoo`: each model is built small from its configuration, with random weights; traced at both",
        "levels; planned by every strategy; and validated against eager with aot_eager under",
        f'{", ".join(VALIDATED)}. Stock PyTorch (`torch.compile(backend="aot_eager")`) is asked first.',
        "",
        *(f"* {line}" for line in describe_machine()),
        "",
        summary,
        "",
        "| model | regions | nodes | tensors | plans | validated | verdict |",
        "| --- | ---: | ---: | --- | ---: | ---: | --- |",
        *(
            f"| {row.spec} | {row.regions} | {row.nodes:,} | {row.tensors} | {row.plans} | {row.passed} of "
            f"{len(VALIDATED)} | {row.verdict} |"
            for row in rows
        ),
    ]
    said = [f"* {row.spec}: {text}" for row in rows for text in (*row.failed, *([row.stock] if row.stock else ()))]
    return "\n".join([*lines, *(["", *said] if said else []), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only models whose name holds this")
    parser.add_argument("--one", nargs=2, metavar=("SPEC", "SETS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(run_one(*given.one))))
        return 0
    chosen = {spec: sets for spec, sets in SPECS.items() if not given.names or any(n in spec for n in given.names)}
    rows = []
    for spec, sets in chosen.items():
        row = in_a_process(spec, sets)
        rows.append(row)
        print(f"{row.verdict:15} {spec}  {row.seconds:.0f} s, {row.nodes:,} nodes", file=sys.stderr, flush=True)
        for text in (*row.failed, row.stock):
            if text:
                print(f"    {text}", file=sys.stderr, flush=True)
    if not given.names:
        PAGE.write_text(render(rows), encoding="utf-8")
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
