"""pytest: a training step is held to its baseline, and to limits, in a test.

    @pytest.mark.limit_saved("24 MiB")
    def test_memory(aot_graph):
        aot_graph.check(Net(), (x,), loss=lambda output: output.mean())

Baselines lie in .aotcli/ beside those of `aotcli check`, named after the test; `aotcli accept NAME` promotes what a
test found. A failure says what grew, module by module. Nothing but pytest is imported before a test asks for the
fixture.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from aotcli.api.testing import Demand
    from aotcli.errors import AotcliError
    from aotcli.ir.check import Figures, ModelCheck

LIMITS = {
    "limit_saved": ("saved_bytes", "limit_saved(size): at most this is saved for the backward, such as '24 MiB'"),
    "limit_peak": ("peak_bytes", "limit_peak(size): the predicted peak is at most this, such as '1.5 GiB'"),
    "limit_recompute": (
        "recompute_flops",
        "limit_recompute(amount): the backward repeats at most this, such as '1 GFLOP' or '5 %' of the step",
    ),
}
_CHECKED = pytest.StashKey["AotGraph"]()
_NOTE = "aotcli_note"
_FALLBACK_WIDTH = 80


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("aotcli")
    group.addoption(
        "--aotcli-new",
        metavar="DIR",
        help="also write new baselines into this folder, as an artefact of CI (where none is written otherwise)",
    )


def pytest_configure(config: pytest.Config) -> None:
    for _, text in LIMITS.values():
        config.addinivalue_line("markers", text)


def pytest_runtest_setup(item: pytest.Item) -> None:
    # A mark on a class or a module is for those of its tests that take the fixture.
    marks = [mark.name for mark in item.own_markers if mark.name in LIMITS]
    if marks and "aot_graph" not in getattr(item, "fixturenames", ()):
        _fail(
            f"the mark {marks[0]} has no effect: this test does not use the fixture aot_graph",
            "add it to the test's arguments, and call aot_graph.check(model, inputs)",
        )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    result = yield
    checked = pyfuncitem.stash.get(_CHECKED, None)
    if checked is not None and checked.demands and not checked.names:
        _fail(
            "this test has limits and checks nothing",
            "call aot_graph.check(model, inputs), or take the marks off",
        )
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests have to say beside passing or failing: improvements that a baseline does not hold yet."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    notes = dict.fromkeys(str(value) for name, value in properties if name == _NOTE)
    if notes:
        terminalreporter.section("aotcli")
        for note in notes:
            terminalreporter.write_line(note)


@pytest.fixture
def aot_graph(request: pytest.FixtureRequest) -> AotGraph:
    """Checks training steps: `aot_graph.check(model, inputs, strategy=..., loss=...)`. See docs/pytest.md of aotcli."""
    graph = AotGraph(request.node)
    request.node.stash[_CHECKED] = graph
    return graph


class AotGraph:
    """Holds training steps of one test to their baselines and to the test's limits."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._test = _test_id(item)
        self.names: list[str] = []
        self.demands = self._demands()

    def check(
        self,
        model: Any,
        inputs: Any = None,
        *,
        strategy: Any = "mincut",
        options: Any = None,
        name: str | None = None,
        baseline: bool | None = None,
        growth: Any = 0,
        forbid_ops: Sequence[str] = (),
        structure: str = "ignore",
        **capturing: Any,
    ) -> Figures:
        """Capture `model` with `inputs`, plan it, and fail where the plan breaks a limit or grew past its baseline.

        `capturing` are `loss`, `dynamic_shapes`, and the settings of a capture: level, device, dtype, autocast, train,
        ... `name` tells several checks of one test apart. `baseline` None demands a baseline unless the test has
        limits, and holds to one that has been accepted in any case. `growth` is how much saved bytes and peak may grow
        above it ("1 %", "16 MiB"); `forbid_ops` and `structure` are as in `[tool.aotcli.check]`.

        Gives the figures of the plan: saved_bytes, peak_bytes, recompute_flops.
        """
        from aotcli.api import testing
        from aotcli.api.judging import Keep
        from aotcli.errors import AotcliError

        try:
            step = testing.TestedStep(
                name=self._new_name(testing.baseline_name(self._test, name)),
                test=self._test,
                demands=self.demands,
                growth=testing.parse_growth(growth),
                forbid_ops=tuple(forbid_ops),
                structure=testing.parse_structure(structure),
                baseline=not self.demands if baseline is None else baseline,
            )
            artefacts = self._item.config.getoption("--aotcli-new")
            keep = Keep(write=not _in_ci(), artefacts=Path(artefacts) if artefacts else None)
            store = testing.project_store(self._item.config.rootpath)
            found = testing.check_step(
                model, inputs, step, store, keep, strategy=strategy, options=options, **capturing
            )
        except AotcliError as error:
            _fail_with(error)
        return self._judged(found, step.baseline)

    def _demands(self) -> tuple[Demand, ...]:
        """What the test's marks demand; of two of one kind the nearest counts."""
        from aotcli.api.testing import parse_demand
        from aotcli.errors import InputError
        from aotcli.ir.check import Quantity

        found: list[Demand] = []
        for mark, (quantity, text) in LIMITS.items():
            marker = self._item.get_closest_marker(mark)
            if marker is None:
                continue
            if len(marker.args) != 1 or marker.kwargs:
                _fail(f"the mark {mark} takes one amount", f"write it as {text.partition(':')[0]}")
            try:
                found.append(parse_demand(Quantity(quantity), marker.args[0]))
            except InputError as error:
                _fail_with(error, f"{mark}({marker.args[0]!r}): ")
        return tuple(found)

    def _new_name(self, name: str) -> str:
        if name in self.names:
            _fail(
                f"{name} was checked before in this test",
                "give each check a name of its own: aot_graph.check(model, inputs, name=...)",
            )
        self.names.append(name)
        return name

    def _judged(self, found: ModelCheck, baseline: bool) -> Figures:
        """The figures of a check that was passed. Fails the test with what it says where it was not."""
        from aotcli.ir.check import Verdict
        from aotcli.render.check_text import render_model_text

        verdict = found.verdict
        if verdict in (Verdict.FAIL, Verdict.ERROR) or (verdict is Verdict.NEW and baseline):
            pytest.fail(render_model_text(found, _page()).rstrip(), pytrace=False)
        assert found.now is not None  # only an ERROR has none
        if verdict is Verdict.BETTER:
            self._item.user_properties.append((_NOTE, _better_text(found)))
        return found.now


def _better_text(found: ModelCheck) -> str:
    """What fell, and the command that makes it the baseline."""
    from aotcli.render.check_words import LABELS, gain_text

    gains = [" ".join(f"{LABELS[gain.quantity]} {gain_text(gain)}".split()) for gain in found.gains]
    return f"{found.model.name} is better than its baseline: {', '.join(gains)}\n  hold it: {found.accept_command}"


def _test_id(item: pytest.Item) -> str:
    """The test's id, without the group that pytest-xdist hangs on it."""
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return item.nodeid
    name = group.args[0] if group.args else group.kwargs.get("name", "default")
    return item.nodeid.removesuffix(f"@{name}")


def _page() -> Any:
    from aotcli.render.page import MIN_WIDTH, Page

    width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
    return Page(max(MIN_WIDTH, width))


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def _fail(what: str, fix: str) -> NoReturn:
    raise pytest.fail.Exception(f"{what}\n  fix: {fix}", pytrace=False) from None


def _fail_with(error: AotcliError, before: str = "") -> NoReturn:
    """Fail with an error in words: it names the line of the user's that raised, and no line of ours."""
    lines = [f"{before}{error.what}"]
    lines += [f"  {label}: {text}" for label, text in (("why", error.why), ("fix", error.fix)) if text]
    raise pytest.fail.Exception("\n".join(lines), pytrace=False) from None
