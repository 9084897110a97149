"""What `aotcli strategies` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aotcli.render.page import Page

if TYPE_CHECKING:
    from aotcli.strategies import StrategyInfo

_INDENT = 4


def render_strategies_text(infos: Sequence[StrategyInfo], page: Page) -> str:
    """Each strategy with its summary, then its options with kinds, defaults and help."""
    lines: list[str] = []
    for info in infos:
        aliases = f" (also {', '.join(info.aliases)})" if info.aliases else ""
        live = " [needs the model, not a record]" if info.needs_live else ""
        lines.append(page.style(info.name, "bold") + aliases + live)
        lines += page.wrap(info.summary, _INDENT)
        for option in info.options:
            head = f"{option.name}={_default_text(option.default)}"
            lines += page.wrap(f"{head}: {option.help or option.kind}", _INDENT + 4, "    --opt ".ljust(_INDENT + 4))
        lines.append("")
    lines.append("FILE.py:NAME is a strategy of your own. Options: --opt KEY=VALUE, or NAME:KEY=VALUE,...")
    return page.finish(lines)


def _default_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(str(each) for each in value)
    return str(value)
