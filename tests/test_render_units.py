"""Numbers as people read them, and the page that text is set on."""

from __future__ import annotations

import pytest

from aotcli.render import units
from aotcli.render.page import Column, Page, fit, plain, spread, table, to_ascii, visible_length


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1024**2, "1.0 MiB"),
        (1024**3 - 1, "1.00 GiB"),
        (6535356420, "6.09 GiB"),
        (3 * 1024**4, "3.00 TiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_bytes(nbytes: int, text: str) -> None:
    assert units.bytes_text(nbytes) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 FLOP"), (999, "999 FLOP"), (67108864, "67.1 MFLOP"), (2.33e12, "2.33 TFLOP"), (9.996e9, "10.0 GFLOP")],
)
def test_magnitudes(number: float, text: str) -> None:
    assert units.magnitude_text(number, "FLOP") == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(7, "7"), (9999, "9,999"), (525_600, "525.6 k"), (124_439_808, "124.4 M"), (70_550_000_000, "70.55 B")],
)
def test_parameters(count: int, text: str) -> None:
    assert units.parameters_text(count) == text


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        (5, 5, "same"),
        (174, 100, "+74.0 %"),
        (72, 100, "−28.0 %"),
        (100001, 100000, "≈ same"),
        (5, 0, "new"),
        (0, 0, "same"),
    ],
)
def test_changes(new: int, old: int, text: str) -> None:
    assert units.change_text(new, old) == text


def test_shares_and_columns() -> None:
    assert units.percent_text(1, 4) == "25.0"
    assert units.percent_text(1, 10_000) == "<0.1"
    assert units.percent_text(0, 4) == "0.0"
    assert units.percent_text(1, 0) == "0.0"
    assert units.column_unit(5 << 20) == ("MiB", 1 << 20)
    assert units.column_unit(5 << 10) == ("KiB", 1 << 10)
    assert units.column_unit(5) == ("bytes", 1)
    assert units.column_bytes(100, 1 << 20) == "<0.1"
    assert units.column_bytes(0, 1 << 20) == "0.0"
    assert units.column_bytes(100, 1) == "100"


def test_shapes_and_dtypes() -> None:
    assert units.shape_text((8, 1024)) == "8×1024"
    assert units.shape_text(()) == "scalar"
    assert units.shape_text(("s77", "2*s3", 4)) == "s77×(2*s3)×4"
    assert units.dtype_text("torch.bfloat16") == "bf16"
    assert units.dtype_text("float8_e8m0fnu") == "float8_e8m0fnu"


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "just now"), (200, "3 min ago"), (7200, "2 h ago"), (3 * 86400, "3 days ago")]
)
def test_ages(seconds: float, text: str) -> None:
    assert units.age_text(seconds) == text


class TestPage:
    def test_wrapping_keeps_numbers_with_their_units(self) -> None:
        lines = Page(width=24).wrap("forward 732 ops, 2.33 TFLOP and 4.38 GiB", 4, "Ops")
        assert lines == ["Ops forward 732 ops,", "    2.33 TFLOP and", "    4.38 GiB"]

    def test_a_narrow_table_cuts_text_and_keeps_numbers(self) -> None:
        columns = [Column("n", right=True), Column("what", minimum=6), Column("why", minimum=6)]
        rows = [["1234567", "a long description", "a reason that is longer still"]]
        lines = table(Page(width=34), columns, rows)
        assert lines[1] == "1234567  a long des…  a reason th…"
        assert max(map(len, lines)) <= 34

    def test_columns_line_up_with_color_as_without(self) -> None:
        columns = [Column("n", right=True, style="bold"), Column("what", style="cyan")]
        rows = [["1", "a"], ["22", "bb"]]
        plain_lines = table(Page(), columns, rows)
        colored = table(Page(color=True), columns, rows)
        assert [visible_length(line) for line in colored] == [len(line) for line in plain_lines]
        assert "\x1b[36m" in colored[1]

    def test_ascii(self) -> None:
        page = Page(unicode=False)
        assert page.finish(["8×8 · −1 ≥ 2 → …"]) == "8x8 - -1 >= 2 -> ...\n"
        assert to_ascii("日本") == "??"
        assert fit("abcdefgh", 6, unicode=False) == "abc..."
        (_, row) = table(page, [Column("shape", minimum=3)], [["8×8×8"]])
        assert row == "8x8x8"

    def test_control_characters_are_not_passed_on(self) -> None:
        assert plain("a\x1b[31mb\x07") == "a?[31mb?"
        (_, row) = table(Page(), [Column("x")], [["a\x1b[2Jb"]])
        assert "\x1b" not in row

    def test_two_ends_of_a_line(self) -> None:
        assert spread(Page(width=20), "left", "right") == ["left        right"]
        assert spread(Page(width=8), "left", "right") == ["left", "right"]
