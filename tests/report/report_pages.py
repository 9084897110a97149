"""What tests of the report share: its data, graphs that are odd, and how to read a page in the browser."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from browser import Opened
from builders import GraphBuilder, layered, sample_trace

from aotcli import api
from aotcli.ir.joint import JointGraph
from aotcli.ir.trace import Trace

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--"


def data(trace: Trace, **options: Any) -> dict[str, Any]:
    """The data that the page holds."""
    return embedded(api.report(trace, **options).html())


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def forward_only() -> JointGraph:
    """One op, and no backward."""
    g = GraphBuilder()
    y = g.pointwise("aten.relu.default", g.input("x", (2, 2)))
    return dataclasses.replace(g.build([y], [None]), has_backward=False)


def evil_graph(name: str = EVIL) -> JointGraph:
    """A layer whose module, class and file have a name; it saves what its backward needs."""
    g = GraphBuilder()
    w, x = g.param("w", (8, 8), origin=f"{name}.weight"), g.input("x", (8, 8))
    t = g.tangent("t", (8, 8))
    own = {"module": name, "module_type": name, "source": f"{name}.py:3"}
    h = g.matmul(x, w, (8, 8), **own)
    y = g.pointwise("aten.exp.default", g.pointwise("aten.sin.default", h, **own), **own)
    gh = g.pointwise("aten.mul.Tensor", g.pointwise("aten.cos.default", h, backward=True, **own), t, **own)
    gw = g.matmul(g.view(x, (8, 8), target="aten.t.default", backward=True), gh, (8, 8), **own)
    return g.build([y], [gw, None])


def gpt_like() -> Trace:
    """Five equal layers: folded in the first view, apart in the second."""
    return sample_trace(layered(5), breaks=())


def text(opened: Opened, selector: str) -> str:
    return opened.page.inner_text(selector)


def rows(opened: Opened, panel: str) -> list[list[str]]:
    """The cells of a table's rows."""
    script = """(panel) => [...document.querySelectorAll(`#panel-${panel} tbody tr`)].map((row) =>
      [...row.cells].map((cell) => cell.innerText.trim()))"""
    found: list[list[str]] = opened.run(script, panel)
    return found
