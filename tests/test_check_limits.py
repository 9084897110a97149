"""Limits: what is allowed, what breaks them, and how alike two graphs are."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli import api
from aotcli.analysis.limits import (
    compare_structure,
    find_gains,
    first_difference,
    judge_figures,
    judge_ops,
    judge_structure,
    matching_nodes,
)
from aotcli.analysis.limits_contributors import (
    PlannedStep,
    op_contributors,
    peak_contributors,
    recompute_contributors,
    saved_rows,
)
from aotcli.ir.check import (
    CheckedModel,
    CheckRun,
    Failure,
    FigureBreach,
    Figures,
    Limit,
    Limits,
    ModelCheck,
    Quantity,
    Structure,
    Tolerance,
    Verdict,
)
from aotcli.ir.joint import JointGraph

PERCENT = Tolerance(share=Fraction(1, 100))
AMOUNTS = st.integers(0, 1 << 50)
TOLERANCES = st.one_of(
    st.builds(Tolerance, share=st.fractions(0, 1, max_denominator=1000)), st.builds(Tolerance, amount=AMOUNTS)
)


def saved(limit: Limit, before: int | None, now: int) -> tuple[FigureBreach, ...]:
    old = None if before is None else Figures(before, 0, 0)
    return judge_figures(Limits((limit,)), old, Figures(now, 0, 0))


class TestFigures:
    @pytest.mark.parametrize(("now", "broken"), [(99, False), (100, False), (101, False), (102, True)])
    def test_a_share_of_the_baseline(self, now: int, broken: bool) -> None:
        assert bool(saved(Limit(Quantity.SAVED, growth=PERCENT), 100, now)) is broken

    @pytest.mark.parametrize(("now", "broken"), [(10, False), (15, False), (16, True)])
    def test_an_amount_more(self, now: int, broken: bool) -> None:
        assert bool(saved(Limit(Quantity.SAVED, growth=Tolerance(amount=5)), 10, now)) is broken

    def test_a_share_of_nothing_is_nothing(self) -> None:
        (breach,) = saved(Limit(Quantity.SAVED, growth=Tolerance(share=Fraction(1))), 0, 1)
        assert (breach.before, breach.now, breach.allowed, breach.grew) == (0, 1, 0, True)

    @pytest.mark.parametrize("before", [None, 10, 500])
    def test_max_holds_without_a_baseline_and_whatever_it_has(self, before: int | None) -> None:
        (breach,) = saved(Limit(Quantity.SAVED, most=99), before, 100)
        assert (breach.rule, breach.allowed, breach.before) == ("saved_bytes.max", 99, before)
        assert not saved(Limit(Quantity.SAVED, most=100), before, 100)

    def test_growth_is_nothing_without_a_baseline(self) -> None:
        assert not saved(Limit(Quantity.SAVED, growth=Tolerance()), None, 1 << 60)

    def test_both_are_named(self) -> None:
        found = saved(Limit(Quantity.SAVED, 5, Tolerance()), 4, 6)
        assert [breach.rule for breach in found] == ["saved_bytes.max", "saved_bytes.growth"]

    @pytest.mark.parametrize("quantity", Quantity)
    def test_each_figure_is_its_own(self, quantity: Quantity) -> None:
        limits = Limits(tuple(Limit(each, growth=Tolerance()) for each in Quantity))
        before = Figures(10, 10, 10)
        (breach,) = judge_figures(limits, before, dataclasses.replace(before, **{quantity.value: 11}))
        assert breach.quantity is quantity

    @given(TOLERANCES, AMOUNTS, AMOUNTS)
    def test_growth_breaks_above_and_gains_below_and_never_both(self, growth: Tolerance, before: int, now: int) -> None:
        limit = Limit(Quantity.PEAK, growth=growth)
        old, new = Figures(0, before, 0), Figures(0, now, 0)
        broken, gained = judge_figures(Limits((limit,)), old, new), find_gains(Limits((limit,)), old, new)
        assert not (broken and gained)
        assert bool(broken) == (now > before + growth.amount + before * growth.share // 1)
        assert not broken or now > before
        assert not gained or now < before

    @given(TOLERANCES, AMOUNTS)
    def test_what_did_not_change_breaks_nothing(self, growth: Tolerance, amount: int) -> None:
        limits = Limits((Limit(Quantity.SAVED, growth=growth),))
        same = Figures(amount, 0, 0)
        assert not judge_figures(limits, same, same)
        assert not find_gains(limits, same, same)

    def test_a_gain_needs_a_growth_limit(self) -> None:
        assert not find_gains(Limits((Limit(Quantity.SAVED, most=100),)), Figures(90, 0, 0), Figures(1, 0, 0))


class TestOps:
    def test_an_op_with_and_without_its_overload_and_by_pattern(self) -> None:
        graph = layered(3)
        for pattern in ("aten.gelu.default", "aten.gelu", "aten.gelu.*", "*.gelu"):
            (breach,) = judge_ops(Limits(forbid_ops=(pattern,)), [graph], [layered(2)])
            assert (breach.op, breach.count, breach.before) == ("aten.gelu.default", 3, 2)
        assert not judge_ops(Limits(forbid_ops=("aten.gel", "gelu")), [graph], None)

    def test_every_op_that_a_pattern_means_is_a_breach(self) -> None:
        found = judge_ops(Limits(forbid_ops=("aten.gelu*",)), [layered(2)], None)
        assert {breach.op: breach.before for breach in found} == {
            "aten.gelu.default": None,
            "aten.gelu_backward.default": None,
        }

    def test_dead_ops_are_not_there(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (2, 4))
        g.pointwise("aten.exp.default", x)
        graph = g.build([g.pointwise("aten.relu.default", x)], [None])
        assert not judge_ops(Limits(forbid_ops=("aten.exp",)), [graph], None)

    def test_ops_of_nested_graphs_count(self) -> None:
        inner = GraphBuilder()
        x = inner.input("x", (2, 4))
        body = inner.build([inner.pointwise("aten.exp.default", x)], [], has_backward=False)
        g = GraphBuilder()
        y = g.input("y", (2, 4))
        called = g.op("higher_order.wrap", g.subgraph("wrap_body", body), y, shape=(2, 4))
        graph = g.build([called], [None])
        (breach,) = judge_ops(Limits(forbid_ops=("aten.exp",)), [graph], None)
        assert breach.count == 1

    def test_where_they_stand_is_folded_by_layer(self) -> None:
        rows = op_contributors(matching_nodes("aten.gelu", [layered(3)]))
        assert [(row.amount, row.count, row.module, row.source) for row in rows] == [(3, 3, "h.*", "net.py:8")]


class TestStructure:
    def test_the_same_graph(self) -> None:
        assert compare_structure([layered(2)], [layered(2)]) is Structure.EXACT

    def test_dead_and_repeated_code_is_equivalent(self) -> None:
        plain, other = self.graph(), self.graph(dead=True, twice=True)
        assert compare_structure([plain], [other]) is Structure.EQUIVALENT
        assert compare_structure([other], [plain]) is Structure.EQUIVALENT

    def graph(self, *, dead: bool = False, twice: bool = False) -> JointGraph:
        g = GraphBuilder()
        w, x = g.param("w", (4, 4)), g.input("x", (2, 4))
        if dead:
            g.pointwise("aten.exp.default", x)
        y = g.matmul(x, w, (2, 4))
        a = g.pointwise("aten.relu.default", y)
        b = g.pointwise("aten.relu.default", y) if twice else a
        z = g.pointwise("aten.add.Tensor", a, b)
        t = g.tangent(shape=(2, 4))
        return g.build([z], [g.matmul(g.view(x, (4, 2)), t, (4, 4)), None])

    @pytest.mark.parametrize("other", [[layered(3)], [two_matmuls()], [layered(2), layered(2)], []], ids=len)
    def test_anything_else_is_neither(self, other: list[JointGraph]) -> None:
        assert compare_structure([layered(2)], other) is Structure.IGNORE

    @given(st.integers(0, 10_000))
    @settings(max_examples=25, deadline=None)
    def test_a_graph_is_its_own_equal(self, seed: int) -> None:
        assert compare_structure([random_graph(seed)], [random_graph(seed)]) is Structure.EXACT

    @pytest.mark.parametrize(
        ("demanded", "kept"),
        [
            (Structure.EXACT, {Structure.EXACT}),
            (Structure.EQUIVALENT, {Structure.EXACT, Structure.EQUIVALENT}),
            (Structure.IGNORE, set(Structure)),
        ],
    )
    def test_what_breaks(self, demanded: Structure, kept: set[Structure]) -> None:
        limits = Limits(structure=demanded)
        assert {found for found in Structure if not judge_structure(limits, found)} == kept

    def test_the_first_difference_is_named(self) -> None:
        assert first_difference([layered(2)], [layered(2, width=32)]) == (
            "primals_1 is primal float32[32, 32], and was primal float32[16, 16]"
        )
        assert first_difference([layered(2)], [layered(2)] * 2) == "2 regions instead of 1"
        assert first_difference([layered(2)], [layered(2)]) == ""


class TestContributors:
    def step(self, graph: JointGraph, strategy: str = "save-all") -> PlannedStep:
        plan = api.partition(sample_trace(graph), strategy=strategy, alternatives=False).plan
        return PlannedStep((graph,), plan.partitions)

    @given(st.integers(0, 5000), st.sampled_from(["save-all", "mincut", "recompute-all"]))
    @settings(max_examples=25, deadline=None)
    def test_rows_add_up(self, seed: int, strategy: str) -> None:
        step, other = self.step(random_graph(seed), strategy), self.step(random_graph(seed + 1), strategy)
        (plan,), (old,) = step.partitions, other.partitions
        assert sum(row.amount for row in saved_rows(step)) == plan.saved_bytes
        assert sum(row.amount for row in peak_contributors(None, step)) == plan.peak_bytes
        assert sum(row.amount for row in peak_contributors(other, step)) == plan.peak_bytes - old.peak_bytes
        assert sum(row.amount for row in recompute_contributors(None, step)) == plan.recompute_flops
        rows = recompute_contributors(other, step)
        assert sum(row.amount for row in rows) == plan.recompute_flops - old.recompute_flops

    def test_what_is_equal_makes_no_row(self) -> None:
        step = self.step(layered(3))
        assert peak_contributors(step, step) == ()

    def test_another_shape_is_a_change_and_no_exchange(self) -> None:
        rows = peak_contributors(self.step(layered(3)), self.step(layered(3, batch=12)))
        assert not any(row.gone for row in rows)
        assert {row.shape for row in rows} == {(12, 16)}
        assert all(0 < row.amount < 12 * 16 * 4 * row.count for row in rows)

    def test_what_is_gone_says_so(self) -> None:
        rows = peak_contributors(self.step(layered(3)), self.step(two_matmuls()))
        assert {row.module for row in rows if row.gone} >= {"h.*", "h.*.fc"}
        assert all(row.amount < 0 for row in rows if row.gone)


class TestVerdicts:
    MODEL = CheckedModel("net", "net.py")
    KEPT = Figures(1, 1, 1)

    @pytest.mark.parametrize(
        ("fields", "verdict", "code"),
        [
            ({"now": KEPT, "before": KEPT}, Verdict.OK, 0),
            ({"now": KEPT}, Verdict.NEW, 1),
            ({"now": KEPT, "breaches": (FigureBreach(Quantity.SAVED, 1, 0),)}, Verdict.FAIL, 1),
            ({"failure": Failure("a", "", "", 2)}, Verdict.ERROR, 2),
            ({"failure": Failure("a", "", "", 3)}, Verdict.ERROR, 3),
        ],
    )
    def test_one_model(self, fields: dict[str, object], verdict: Verdict, code: int) -> None:
        check = ModelCheck(self.MODEL, "net.aot.json", **fields)  # type: ignore[arg-type]
        assert (check.verdict, check.exit_code) == (verdict, code)

    def test_a_run_ends_with_its_gravest(self) -> None:
        ok = ModelCheck(self.MODEL, "", now=self.KEPT, before=self.KEPT)
        new = ModelCheck(self.MODEL, "", now=self.KEPT)
        bad = ModelCheck(self.MODEL, "", failure=Failure("a", "", "", 2))
        assert CheckRun((ok, ok)).exit_code == 0
        assert CheckRun((ok, new)).exit_code == 1
        assert CheckRun((new, bad, ok)).exit_code == 2
