"""A planned step against its baseline: verdicts, what is written where, other environments, other planners."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from builders import GraphBuilder, layered, sample_trace, two_matmuls

from aotcli import api
from aotcli.api.baselines import BaselineStore, plan_figures
from aotcli.api.checking import accept, check
from aotcli.api.judging import Keep, judge
from aotcli.ir.check import (
    CheckedModel,
    FigureBreach,
    Limit,
    Limits,
    ModelCheck,
    Quantity,
    Structure,
    StructureBreach,
    Tolerance,
    Verdict,
)
from aotcli.ir.joint import JointGraph
from aotcli.ir.trace import Environment, Trace

NO_GROWTH = Limits(tuple(Limit(quantity, growth=Tolerance()) for quantity in Quantity))
EXACT = dataclasses.replace(NO_GROWTH, structure=Structure.EXACT)
NET = CheckedModel("net", "net.py", "net.py", limits=EXACT, words="net.py")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaselineStore:
    monkeypatch.chdir(tmp_path)
    return BaselineStore(tmp_path / ".aotcli")


def step(graph: JointGraph | None = None, **fields: Any) -> Trace:
    return sample_trace(layered(3) if graph is None else graph, breaks=(), **fields)


def judged(
    store: BaselineStore, trace: Trace, model: CheckedModel = NET, keep: Keep | None = None, strategy: str = "mincut"
) -> ModelCheck:
    plan = api.partition(trace, strategy=strategy, alternatives=False).plan
    return judge(model, trace, plan, store, keep)


def accepted(store: BaselineStore, trace: Trace | None = None, model: CheckedModel = NET) -> None:
    judged(store, trace or step(), model)
    accept(store, [model.name], "the first")


class TestVerdicts:
    def test_without_a_baseline(self, store: BaselineStore) -> None:
        found = judged(store, step())
        assert (found.verdict, found.exit_code, found.before) == (Verdict.NEW, 1, None)
        assert found.written == ".aotcli/net.new.aot.json"
        assert found.accept_command == "aotcli accept net"
        assert found.look_command == "aotcli partition .aotcli/net.new.aot.json"

    def test_the_same(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step())
        assert (found.verdict, found.written, found.structure) == (Verdict.OK, None, Structure.EXACT)
        assert (found.difference, found.notes, found.environment) == (None, (), ())
        assert store.new_names() == ()

    def test_names_and_lines_are_no_difference(self, store: BaselineStore) -> None:
        accepted(store)
        graph = layered(3)
        moved = tuple(dataclasses.replace(node, source="other.py:99") for node in graph.nodes)
        found = judged(store, step(dataclasses.replace(graph, nodes=moved)))
        assert (found.verdict, found.written) == (Verdict.OK, None)

    def test_more(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(layered(4)))
        assert (found.verdict, found.exit_code) == (Verdict.FAIL, 1)
        assert [breach.rule for breach in found.breaches] == [
            "saved_bytes.growth",
            "peak_bytes.growth",
            "structure",
        ]
        saved = found.breaches[0]
        assert isinstance(saved, FigureBreach)
        assert (saved.before, saved.now) == (2560, 3584)
        assert sum(row.amount for row in saved.contributors) == 1024
        assert {row.source for row in saved.contributors} <= {"net.py:7", "net.py:9"}
        assert found.accept_command == 'aotcli accept net --reason "why"'
        assert found.look_command == "aotcli diff .aotcli/net.aot.json .aotcli/net.new.aot.json"
        assert found.reason == "the first"

    def test_less(self, store: BaselineStore) -> None:
        accepted(store, step(layered(4)), dataclasses.replace(NET, limits=NO_GROWTH))
        found = judged(store, step(), dataclasses.replace(NET, limits=NO_GROWTH))
        assert (found.verdict, found.exit_code) == (Verdict.BETTER, 0)
        assert [gain.quantity for gain in found.gains] == [Quantity.SAVED, Quantity.PEAK]
        assert found.written is not None
        assert "aotcli accept net" in found.accept_command

    def test_within_its_tolerance(self, store: BaselineStore) -> None:
        limits = Limits((Limit(Quantity.SAVED, growth=Tolerance(share=Fraction(1, 2))),))
        accepted(store)
        found = judged(store, step(layered(4)), dataclasses.replace(NET, limits=limits))
        assert (found.verdict, found.gains) == (Verdict.OK, ())
        assert found.written is not None  # who wants it as the baseline may have it

    def test_a_maximum_below_the_baseline(self, store: BaselineStore) -> None:
        accepted(store)
        limits = Limits((Limit(Quantity.SAVED, most=2000),))
        found = judged(store, step(), dataclasses.replace(NET, limits=limits))
        (breach,) = found.breaches
        assert isinstance(breach, FigureBreach)
        assert not breach.grew
        assert sum(row.amount for row in breach.contributors) == 2560

    def test_a_maximum_without_a_baseline(self, store: BaselineStore) -> None:
        limits = Limits((Limit(Quantity.PEAK, most=1), Limit(Quantity.SAVED, most=1)), forbid_ops=("aten.gelu",))
        found = judged(store, step(), dataclasses.replace(NET, limits=limits))
        assert found.verdict is Verdict.FAIL
        assert [breach.rule for breach in found.breaches] == ["peak_bytes.max", "saved_bytes.max", "forbid_ops"]
        assert all(breach.contributors for breach in found.breaches)

    def test_recomputed_flops(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(), dataclasses.replace(NET, strategy="recompute-all"), strategy="recompute-all")
        assert [breach.rule for breach in found.breaches] == ["recompute_flops.growth"]
        assert {row.what for row in found.breaches[0].contributors} == {"mm"}
        assert [(change.what, change.left, change.right) for change in found.settings] == [
            ("strategy", "mincut", "recompute-all")
        ]
        assert found.look_command.endswith(".aotcli/net.new.aot.json@recompute-all")


class TestStructure:
    def graph(self, *, dead: bool) -> JointGraph:
        g = GraphBuilder()
        w, x = g.param("w", (4, 4)), g.input("x", (2, 4))
        if dead:
            g.pointwise("aten.exp.default", x)
        y = g.matmul(x, w, (2, 4))
        t = g.tangent(shape=(2, 4))
        return g.build([y], [g.matmul(g.view(x, (4, 2)), t, (4, 4)), None])

    @pytest.mark.parametrize(("structure", "kept"), [(Structure.EXACT, False), (Structure.EQUIVALENT, True)])
    def test_dead_code(self, store: BaselineStore, structure: Structure, kept: bool) -> None:
        model = dataclasses.replace(NET, limits=Limits(structure=structure))
        accepted(store, step(self.graph(dead=False)), model)
        found = judged(store, step(self.graph(dead=True)), model)
        assert found.structure is Structure.EQUIVALENT
        assert (found.verdict is Verdict.OK) is kept

    def test_the_first_difference_is_named(self, store: BaselineStore) -> None:
        model = dataclasses.replace(NET, limits=Limits(structure=Structure.EQUIVALENT))
        accepted(store, model=model)
        (breach,) = judged(store, step(two_matmuls()), model).breaches
        assert isinstance(breach, StructureBreach)
        assert breach.first.startswith("primals_1 is primal float32[8, 16]")


class TestEnvironment:
    OTHER = Environment(torch="2.12.1", device="cpu")

    def test_is_named_and_limits_hold(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(layered(4), environment=self.OTHER))
        assert [(each.what, each.left, each.right) for each in found.environment] == [("torch", "2.13.0", "2.12.1")]
        assert [breach.rule for breach in found.breaches] == ["saved_bytes.growth", "peak_bytes.growth"]
        assert "the graph differs" in found.notes[0]

    def test_structure_is_a_note(self, store: BaselineStore) -> None:
        model = dataclasses.replace(NET, limits=Limits(structure=Structure.EXACT))
        accepted(store, model=model)
        found = judged(store, step(layered(2), environment=self.OTHER), model)
        assert found.verdict is Verdict.OK
        assert "not enforced" in found.notes[0]

    def test_unless_strict(self, store: BaselineStore) -> None:
        model = dataclasses.replace(NET, limits=Limits(structure=Structure.EXACT, strict_env=True))
        accepted(store, model=model)
        found = judged(store, step(layered(2), environment=self.OTHER), model)
        assert [breach.rule for breach in found.breaches] == ["structure"]

    @pytest.mark.parametrize(
        "environment",
        [Environment("2.13.0", "cpu"), Environment("2.13.0+cu126", "cpu", cuda="12.6")],
        ids=["no build", "CUDA build"],
    )
    def test_another_build_on_the_cpu_is_the_same(self, store: BaselineStore, environment: Environment) -> None:
        accepted(store)
        found = judged(store, step(environment=environment))
        assert (found.verdict, found.environment, found.written) == (Verdict.OK, (), None)

    def test_the_level_and_the_device(self, store: BaselineStore) -> None:
        accepted(store)
        environment = Environment("2.13.0", "cuda", "H200", "12.6")
        found = judged(store, step(layered(3, level="inductor"), environment=environment))
        assert {each.what for each in found.environment} == {"level", "device", "device name", "CUDA"}

    def test_settings_are_no_environment(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(layered(4), train=False))
        assert [(each.what, each.left, each.right) for each in found.settings] == [("mode", "train", "eval")]
        assert "structure" in [breach.rule for breach in found.breaches]


class TestPlanner:
    def test_figures_are_those_that_were_accepted(self, store: BaselineStore) -> None:
        """Another aotcli planned the baseline: growth counts from what was reviewed, and the planner's part is told."""
        accepted(store)
        path = store.path("net")
        document = json.loads(path.read_text())
        document["baseline"]["figures"]["saved_bytes"] = 2000
        document["baseline"]["aotcli"] = "0.0.1"
        path.write_text(json.dumps(document))
        found = judged(store, step())
        assert [breach.rule for breach in found.breaches] == ["saved_bytes.growth"]
        assert found.replanned is not None
        assert found.replanned.saved_bytes == 2560
        assert [each.left for each in found.settings if each.what == "aotcli"] == ["0.0.1"]

    def test_the_same_planner_has_nothing_to_tell(self, store: BaselineStore) -> None:
        accepted(store)
        assert judged(store, step(layered(4))).replanned is None

    def test_a_strategy_that_is_gone(self, store: BaselineStore) -> None:
        accepted(store)
        path = store.path("net")
        path.write_text(path.read_text().replace('"strategy": "mincut"', '"strategy": "gone"'))
        found = judged(store, step(layered(4)))
        assert found.failure is None
        assert found.replanned is None
        assert found.breaches[0].contributors


class TestBaselinesOfAnotherKind:
    def test_a_plain_record(self, store: BaselineStore) -> None:
        store.folder.mkdir()
        api.save(step(), store.path("net"))
        found = judged(store, step())
        assert found.verdict is Verdict.OK
        assert "plain record" in found.notes[0]
        assert found.written is not None

    def test_another_model(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(two_matmuls()), dataclasses.replace(NET, spec="other.py"))
        assert (found.verdict, found.exit_code) == (Verdict.ERROR, 2)
        assert found.failure is not None
        assert "another model" in found.failure.what
        assert found.failure.why == "it was made from net.py, and net is other.py"
        accept(store, ["net"], "another model")
        found = judged(store, step(two_matmuls()), dataclasses.replace(NET, spec="other.py"))
        assert found.verdict is Verdict.OK

    def test_a_model_that_moved(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, step(), dataclasses.replace(NET, spec="models/net.py"))
        assert found.verdict is Verdict.OK
        assert found.notes == ("the baseline was made from net.py; the graph is the same",)

    def test_damaged(self, store: BaselineStore) -> None:
        accepted(store)
        store.path("net").write_text("{")
        found = judged(store, step())
        assert (found.verdict, found.exit_code) == (Verdict.ERROR, 2)
        assert store.new_names() == ("net",)  # what the advice accepts
        accept(store, ["net"], "it was damaged")
        assert judged(store, step()).verdict is Verdict.OK

    def test_of_another_region_count(self, store: BaselineStore) -> None:
        accepted(store)
        found = judged(store, sample_trace(layered(3), two_matmuls()))
        assert found.verdict is Verdict.FAIL
        assert any(each.what == "graph breaks" for each in found.settings)


class TestKeeping:
    def test_in_ci_nothing_is_written(self, store: BaselineStore) -> None:
        found = judged(store, step(), keep=Keep(write=False))
        assert (found.written, store.folder.exists()) == (None, False)
        assert found.accept_command == "aotcli check net; aotcli accept net"
        assert found.look_command == "aotcli partition net.py"

    def test_in_ci_what_waits_stays(self, store: BaselineStore) -> None:
        accepted(store)
        judged(store, step(layered(4)))
        judged(store, step(), keep=Keep(write=False))
        assert store.new_names() == ("net",)

    def test_in_ci_but_into_a_folder(self, store: BaselineStore, tmp_path: Path) -> None:
        accepted(store)
        folder = tmp_path / "artefacts" / "deep"
        found = judged(store, step(layered(4)), keep=Keep(False, folder))
        assert found.written == "artefacts/deep/net.new.aot.json"
        assert store.new_names() == ()
        (folder / "net.new.aot.json").rename(store.new_path("net"))
        accept(store, ["net"], "from CI")
        assert judged(store, step(layered(4))).verdict is Verdict.OK

    def test_what_no_longer_differs_is_taken_away(self, store: BaselineStore) -> None:
        accepted(store)
        judged(store, step(layered(4)))
        assert store.new_names() == ("net",)
        judged(store, step())
        assert store.new_names() == ()

    def test_a_test_is_named_in_ci(self, store: BaselineStore) -> None:
        model = dataclasses.replace(NET, test="tests/test_net.py::test_it[a b]")
        found = judged(store, step(), model, keep=Keep(write=False))
        assert found.accept_command == "pytest 'tests/test_net.py::test_it[a b]'; aotcli accept net"


class TestRuns:
    def record(self, folder: Path, name: str, trace: Trace) -> CheckedModel:
        api.save(trace, folder / f"{name}.aot.json")
        path = str(folder / f"{name}.aot.json")
        return CheckedModel(name, f"{name}.aot.json", path, limits=NO_GROWTH, is_record=True)

    def test_one_that_fails_hides_none(self, store: BaselineStore, tmp_path: Path) -> None:
        good = self.record(tmp_path, "good", step())
        bad = dataclasses.replace(good, name="bad", target="absent.aot.json")
        odd = dataclasses.replace(good, name="odd", strategy="nonsense")
        run = check([bad, good, odd], store)
        assert [each.verdict for each in run.models] == [Verdict.ERROR, Verdict.NEW, Verdict.ERROR]
        assert run.exit_code == 2

    def test_a_fault_of_ours_hides_none(self, store: BaselineStore, tmp_path: Path, monkeypatch: Any) -> None:
        models = [self.record(tmp_path, name, step()) for name in ("a", "b")]
        load = api.load
        monkeypatch.setattr(api, "load", lambda path: load(path) if "b.aot" in str(path) else 1 / 0)
        run = check(models, store)
        assert [each.verdict for each in run.models] == [Verdict.ERROR, Verdict.NEW]
        assert run.models[0].failure is not None
        assert "ZeroDivisionError" in run.models[0].failure.what
        assert run.exit_code == 3

    def test_a_strategy_that_needs_the_model(self, store: BaselineStore, tmp_path: Path) -> None:
        model = dataclasses.replace(self.record(tmp_path, "net", step()), strategy="torch-mincut")
        (found,) = check([model], store).models
        assert found.failure is not None
        assert "torch-mincut cannot plan a record" in found.failure.what

    def test_progress_names_the_model(self, store: BaselineStore, tmp_path: Path) -> None:
        told: list[str] = []
        check([self.record(tmp_path, name, step()) for name in ("a", "b")], store, progress=told.append)
        assert told == ["a (1 of 2)", "b (2 of 2)"]

    def test_orphans_are_named_where_all_were_asked_for(self, store: BaselineStore, tmp_path: Path) -> None:
        model = self.record(tmp_path, "net", step())
        check([model], store)
        accept(store, ["net"])
        store.path("old").write_bytes(store.path("net").read_bytes())
        assert check([model], store).orphans == ()
        assert check([model], store, known=["net"]).orphans == (".aotcli/old.aot.json",)

    def test_a_record_of_several_regions(self, store: BaselineStore, tmp_path: Path) -> None:
        trace = sample_trace(layered(3), two_matmuls())
        model = self.record(tmp_path, "net", trace)
        check([model], store)
        (new,) = accept(store, ["net"])
        assert new.now == plan_figures(api.partition(trace, alternatives=False).plan.partitions)
        assert check([model], store).exit_code == 0
