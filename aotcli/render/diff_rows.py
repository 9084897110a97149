"""Which rows of a difference are shown, and what is said of each saved tensor; for text, Markdown and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.ir.difference import Difference, Fate, Growth, SavedChange
from aotcli.render.units import dtype_text, plural, shape_text

ONLY = ("saved", "graph")
DEFAULT_LIMIT = 12
EVERYWHERE = "(all)"

_WAS = {
    Fate.ABSENT: "new",
    Fate.RECOMPUTED: "was recomputed",
    Fate.FORWARD: "was not kept",
    Fate.BACKWARD: "was in backward",
    Fate.KEPT: "was kept anyway",
    Fate.UNUSED: "was unused",
    Fate.SAVED: "shared storage",
}
_IS = {
    Fate.ABSENT: "gone",
    Fate.RECOMPUTED: "recomputed",
    Fate.FORWARD: "not kept",
    Fate.BACKWARD: "in backward",
    Fate.KEPT: "kept anyway",
    Fate.UNUSED: "unused",
    Fate.SAVED: "shares storage",
}


@dataclass(frozen=True, slots=True)
class DiffRows:
    """Which rows: `only` "saved" or "graph"; `every` no limit; `limit` rows in each list, None for the default."""

    only: str | None = None
    every: bool = False
    limit: int | None = None

    @property
    def saved(self) -> bool:
        """Whether what is saved is shown."""
        return self.only != "graph"

    @property
    def graph(self) -> bool:
        """Whether the change of graph is shown."""
        return self.only != "saved"

    def count(self, rows: int, default: int = DEFAULT_LIMIT) -> int:
        """How many of `rows` rows are shown; one row alone is not worth hiding."""
        limit = rows if self.every else default if self.limit is None else self.limit
        return rows if rows == limit + 1 and self.limit is None else min(rows, limit)

    def differs(self, difference: Difference) -> bool:
        """Whether there is a difference in what is shown."""
        saved = not difference.same_saved or bool(difference.fates)
        graph = not difference.same_graph or bool(difference.values) or bool(difference.rewrites)
        return (self.saved and saved) or (self.graph and graph)


# Saved tensors.


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A row of the table: one change, or several that are one because they differ alike everywhere."""

    rows: tuple[SavedChange, ...]
    module: str
    what: str
    shape: str
    dtype: str
    how: str
    source: str

    @property
    def delta_bytes(self) -> int:
        return sum(row.delta_bytes for row in self.rows)

    @property
    def count(self) -> int:
        return sum(row.count for row in self.rows)


def shown_changes(difference: Difference) -> list[ShownChange]:
    """The rows of saved tensors that differ. Rows that only changed their dtype, all in the same way, are one."""
    cast: dict[tuple[str, str], list[SavedChange]] = {}
    for row in difference.contributors:
        if _only_dtype(row):
            assert row.left is not None
            assert row.right is not None
            cast.setdefault((row.left.dtype, row.right.dtype), []).append(row)
    together = {id(row): rows for rows in cast.values() if len(rows) > 2 for row in rows}
    shown: list[ShownChange] = []
    for row in difference.contributors:
        group = together.get(id(row))
        if group is None:
            shown.append(_one(difference, row))
        elif group[0] is row:
            shown.append(_several(difference, group))
    return sorted(shown, key=lambda each: -abs(each.delta_bytes))


def _only_dtype(row: SavedChange) -> bool:
    left, right = row.left, row.right
    if left is None or right is None or left.fate is not Fate.SAVED or right.fate is not Fate.SAVED:
        return False
    return left.dtype != right.dtype and left.shape == right.shape


def _one(difference: Difference, row: SavedChange) -> ShownChange:
    side = row.shown
    more = f" +{side.sources - 1}" if side.sources > 1 else ""
    return ShownChange(
        rows=(row,),
        module=side.module,
        what=side.what,
        shape=shape_text(side.shape),
        dtype=side.dtype,
        how=how_text(difference, row),
        source=f"{side.source}{more}" if side.source else "",
    )


def _several(difference: Difference, rows: Sequence[SavedChange]) -> ShownChange:
    kinds = plural(len(rows), "kind")
    return ShownChange(tuple(rows), EVERYWHERE, kinds, "", rows[0].shown.dtype, how_text(difference, rows[0]), "")


def how_text(difference: Difference, row: SavedChange) -> str:
    """What became of the tensors of a row."""
    partial = row.region < len(difference.regions) and difference.regions[row.region].partial
    if row.growth is Growth.ADDED:
        text = "was not saved" if partial and row.left is None else _WAS[row.left_fate]
    elif row.growth is Growth.REMOVED:
        text = "not saved" if partial and row.right is None else _IS[row.right_fate]
    else:
        text = _altered_text(row)
    return f"{text} (tie)" if row.tie else text


def _altered_text(row: SavedChange) -> str:
    left, right = row.left, row.right
    assert left is not None
    assert right is not None
    if left.what != right.what:
        return f"was {left.what}"
    parts: list[str] = []
    if left.shape != right.shape:
        parts.append(f"was {shape_text(left.shape)}")
    if left.dtype != right.dtype:
        parts.append(f"was {dtype_text(left.dtype)}")
    return ", ".join(parts) or "other storage"


def tie_note(difference: Difference) -> str:
    """What a tie is, where there is one."""
    if not any(row.tie for row in difference.saved):
        return ""
    return "tie: the other side saves another tensor of the same size a few ops away; neither is better"
