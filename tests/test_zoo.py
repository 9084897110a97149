"""The page of `make zoo`."""

from __future__ import annotations

from benchmarks.zoo import SPECS, Row, render


def test_the_page_counts_verdicts_and_says_what_went_wrong() -> None:
    rows = [
        Row("hf:llama", regions=1, nodes=588, tensors="fake", plans=14, passed=3, seconds=9.0),
        Row("hf:odd", stock="Unsupported: no such op"),
        Row("timm:bad", regions=1, nodes=10, tensors="real", plans=13, passed=2, failed=("mincut: outputs: off",)),
    ]
    assert [row.verdict for row in rows] == ["passed", "not in PyTorch", "**failed**"]
    page = render(rows)
    assert "3 models: 1 passed, 1 beyond PyTorch itself, 1 failed." in page
    assert "| hf:llama | 1 | 588 | fake | 14 | 3 of 3 | passed |" in page
    assert "* hf:odd: Unsupported: no such op" in page
    assert "* timm:bad: mincut: outputs: off" in page


def test_enough_models_of_both_kinds() -> None:
    kinds = [spec.partition(":")[0] for spec in SPECS]
    assert kinds.count("hf") >= 12
    assert kinds.count("timm") >= 8
    assert all("=" in each for sets in SPECS.values() for each in sets.split())
