"""Which node of one graph is which node of another: what a comparison rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Match(StrEnum):
    """How two nodes were found to be the same one, surest first."""

    EXACT = "exact"  # one hash over all that leads to both nodes and all that follows from them
    WIRED = "wired"  # all arguments, or the only user, are pairs, and the op is the same
    NEAR = "near"  # alike within a neighbourhood
    ALIGNED = "aligned"  # in the same place of the sequence of one module and phase
    CHANGED = "changed"  # another op, between neighbours that are pairs


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs between the nodes of a left and a right graph, by position; -1 where a node has no partner.

    `right_of[i]` is the partner of left node i, `left_of[j]` that of right node j: each is the other's inverse.
    `match[i]` says how left node i was paired, None where it was not.
    """

    right_of: tuple[int, ...]
    left_of: tuple[int, ...]
    match: tuple[Match | None, ...]

    @property
    def paired(self) -> int:
        """How many pairs there are."""
        return sum(position >= 0 for position in self.right_of)

    def mirrored(self) -> Pairing:
        """The same pairs, seen from the right."""
        match = tuple(None if left < 0 else self.match[left] for left in self.left_of)
        return Pairing(self.left_of, self.right_of, match)
