"""Short phrases that explanations are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotcli.ir.explanation import Place

MOST = 4


def place_text(place: Place) -> str:
    """``mm of h.0.proj``."""
    return f"{place.what} of {place.module}" if place.module else place.what


def places_text(places: Iterable[Place]) -> str:
    """Places with their names, the first few."""
    return listed(list(dict.fromkeys(f"{place_text(place)} ({place.name})" for place in places)))


def listed(texts: Sequence[str], most: int = MOST) -> str:
    """``a, b, and 3 more``."""
    return ", ".join(texts[:most]) + (f", and {len(texts) - most} more" if len(texts) > most else "")


def joined(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
