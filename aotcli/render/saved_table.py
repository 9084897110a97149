"""The table of what is saved: which rows, in which order, in which columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.layers import SavedRow, flat_rows, fold_saved
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Partition
from aotcli.render.page import Column, Page, table
from aotcli.render.units import column_bytes, column_unit, count_text, dtype_text, percent_text, shape_text

SORTS = ("bytes", "order", "module", "name")
DEFAULT_LIMIT = 12
FLAT_LIMIT = 40
WIDE = 110
_WHY_WIDTH = 16
_NEGLIGIBLE = 0.005  # rows that together hold less than this share of all saved bytes are one row


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Which rows: `flat` one per saved value; `every` no limit; `limit` rows, None for the default."""

    flat: bool = False
    every: bool = False
    limit: int | None = None
    sort: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to show, and what the others hold."""

    shown: tuple[SavedRow, ...]
    rest: tuple[SavedRow, ...]


def select_rows(
    graph: JointGraph,
    partition: Partition,
    options: RowOptions,
    categories: tuple[Category, ...] = (Category.ACTIVATION,),
) -> Rows:
    """The rows of one region, sorted, and cut where the rest is small. Ties keep the forward's order."""
    make = flat_rows if options.flat else fold_saved
    rows = list(make(graph, partition.saved, categories))
    order = {value.name: position for position, value in enumerate(partition.saved)}
    largest = sorted(rows, key=lambda row: -row.nbytes)
    kept = len(rows) if options.every else _kept(largest, options)
    shown, rest = largest[:kept], largest[kept:]
    sort = options.sort or "bytes"
    if sort == "order":
        shown.sort(key=lambda row: order[row.values[0].name])
    elif sort == "module":
        shown.sort(key=lambda row: (natural(row.module), order[row.values[0].name]))
    elif sort == "name":
        shown.sort(key=lambda row: natural(row.values[0].name if options.flat else row.what))
    return Rows(tuple(shown), tuple(rest))


def cut_rows(rows: Sequence[SavedRow], kept: int) -> Rows:
    """The first `kept` rows, and the rest; one row alone is not worth hiding."""
    kept = len(rows) if len(rows) == kept + 1 else kept
    return Rows(tuple(rows[:kept]), tuple(rows[kept:]))


def natural(text: str) -> list[tuple[int, int, str]]:
    """A sort key that puts ``mul_2`` before ``mul_10``."""
    key: list[tuple[int, int, str]] = []
    word = ""
    digits = ""
    for char in text + "\0":
        if char.isdigit():
            digits += char
            continue
        if digits:
            key += [(1, 0, word), (0, int(digits), "")]
            word, digits = "", ""
        word += char
    return [*key, (1, 0, word)]


def _kept(largest: Sequence[SavedRow], options: RowOptions) -> int:
    if options.limit is not None:
        return options.limit
    limit = FLAT_LIMIT if options.flat else DEFAULT_LIMIT
    total = sum(row.nbytes for row in largest)
    rest = total
    for position, row in enumerate(largest[:limit]):
        if rest < _NEGLIGIBLE * total and len(largest) - position > 1:
            return position
        rest -= row.nbytes
    # A table with one row more is shorter than one that says "1 more".
    return len(largest) if len(largest) == limit + 1 else limit


def saved_lines(page: Page, rows: Rows, total_bytes: int, options: RowOptions) -> list[str]:
    """The table's lines; percentages are of `total_bytes`."""
    unit, unit_bytes = column_unit(max((row.nbytes for row in rows.shown), default=0))
    usual = _usual_dtype(rows.shown)
    wide = page.width >= WIDE
    columns = _columns(unit, usual, options.flat, wide)
    body = [_cells(row, unit_bytes, total_bytes, usual, options.flat, wide) for row in rows.shown]
    if rows.rest:
        body.append(_rest_cells(rows.rest, unit_bytes, total_bytes, options.flat, wide))
    return table(page, columns, body)


def _columns(unit: str, usual: str, flat: bool, wide: bool) -> list[Column]:
    columns = [Column(unit.rjust(7), right=True), Column("%", right=True)]
    columns.append(Column("name", minimum=10, style="bold") if flat else Column("n", right=True))
    columns += [
        Column("module", minimum=9, style="cyan"),
        Column("what", minimum=10),
        Column("shape" if wide else f"shape {dtype_text(usual)}", minimum=12),
    ]
    if wide:
        columns.append(Column("dtype"))
    columns.append(Column("why it is saved", minimum=10))
    if wide:
        columns.append(Column("line", minimum=16, style="dim", keep_end=True))
    return columns


def _cells(row: SavedRow, unit_bytes: int, total: int, usual: str, flat: bool, wide: bool) -> list[str]:
    shape = shape_text(row.shape)
    if not wide and row.dtype != usual:
        shape = f"{shape} {dtype_text(row.dtype)}"
    cells = [column_bytes(row.nbytes, unit_bytes), percent_text(row.nbytes, total)]
    cells.append(row.values[0].name if flat else count_text(row.count))
    cells += [row.module, row.what, shape]
    if wide:
        cells.append(dtype_text(row.dtype))
    cells.append(row.reason if wide else short_reason(row))
    if wide:
        cells.append(_line_text(row))
    return cells


def short_reason(row: SavedRow) -> str:
    """The reason where it fits a narrow column, else its rule where that is a phrase of its own."""
    reason = row.reason if len(row.reason) <= _WHY_WIDTH else row.reason.replace("convolution", "conv")
    if len(reason) > _WHY_WIDTH and " " in row.rule and len(row.rule) < len(reason):
        return row.rule
    return reason


def _line_text(row: SavedRow) -> str:
    if row.source is None:
        return ""
    return row.source if row.sources <= 1 else f"{row.source} +{row.sources - 1}"


def _rest_cells(rest: Sequence[SavedRow], unit_bytes: int, total: int, flat: bool, wide: bool) -> list[str]:
    nbytes = sum(row.nbytes for row in rest)
    tensors = sum(row.count for row in rest)
    more = f"{len(rest)} more"
    cells = [column_bytes(nbytes, unit_bytes), percent_text(nbytes, total)]
    cells += ["", "", more] if flat else [count_text(tensors), "", more]
    return [*cells, "", *([""] if wide else []), "--all to list", *([""] if wide else [])]


def _usual_dtype(rows: Sequence[SavedRow]) -> str:
    nbytes: Counter[str] = Counter()
    for row in rows:
        nbytes[row.dtype] += row.nbytes
    return nbytes.most_common(1)[0][0] if nbytes else "float32"
