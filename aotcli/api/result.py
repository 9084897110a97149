"""What `partition` gives back: the plans, and the ways to show them."""

from __future__ import annotations

from dataclasses import dataclass, field

from aotcli.analysis.summary import Alternative, Plan
from aotcli.ir.trace import Trace
from aotcli.render.page import Page
from aotcli.render.saved_table import RowOptions


@dataclass(frozen=True, repr=False)
class PartitionResult:
    """The plans of one or several strategies for one trace. Printing it shows what the command line shows."""

    trace: Trace
    plans: tuple[Plan, ...]
    alternative: Alternative | None = None
    target: str = field(default="MODEL", kw_only=True)
    cached: bool = field(default=False, kw_only=True)

    @property
    def plan(self) -> Plan:
        """The first strategy's plan."""
        return self.plans[0]

    @property
    def saved_bytes(self) -> int:
        """Activation bytes that the first plan saves, by unique storage."""
        return self.plan.saved_bytes

    def text(self, page: Page | None = None, rows: RowOptions | None = None, *, quiet: bool = False) -> str:
        """The view of one plan, or the comparison of several."""
        page, rows = page or Page(), rows or RowOptions()
        if len(self.plans) > 1:
            from aotcli.render.comparison_text import render_comparison_text

            return render_comparison_text(self.trace, self.plans, page, rows, cached=self.cached)
        from aotcli.analysis.explain_hint import explain_hint
        from aotcli.analysis.peak import locate_step_peak
        from aotcli.render.partition_text import PartitionView, render_partition_text

        peak = locate_step_peak(self.trace.regions, self.plan.partitions)
        why = explain_hint(self.trace.regions, self.plan.partitions)
        view = PartitionView(rows, self.target, peak, self.alternative, self.plan.usage, quiet, self.cached, why)
        return render_partition_text(self.trace, self.plan, page, view)

    def markdown(self, rows: RowOptions | None = None) -> str:
        """The same as GitHub-flavoured Markdown."""
        from aotcli.render.markdown import render_partition_markdown

        return render_partition_markdown(self.trace, self.plans, rows or RowOptions())

    def json(self) -> str:
        """The plans as JSON of schema "aotcli.partition" ("aotcli.comparison" for several)."""
        from aotcli.render.partition_json import render_partition_json

        return render_partition_json(self.trace, self.plans)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, and each region's picture."""
        from aotcli.api.draw import draw
        from aotcli.render.notebook import text_html

        verdict = text_html(self.text(quiet=True))
        return verdict if len(self.plans) > 1 else f"{verdict}{draw(self)._repr_html_()}"
