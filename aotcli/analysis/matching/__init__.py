"""Which node of one joint graph is which node of another, whatever either calls them."""

from aotcli.analysis.matching.match import match_graphs

__all__ = ["match_graphs"]
