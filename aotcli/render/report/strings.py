"""Texts that occur often, written once."""

from __future__ import annotations


class Strings:
    """A table of texts; `number` gives the place of one, adding it where it is new. None is -1."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        if text is None:
            return -1
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found
