"""Baselines as files: what they hold, how they are kept, accepted, and refused."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest
from builders import layered, random_graph, sample_trace, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli import __version__, api
from aotcli.api.baselines import (
    BaselineStore,
    accepted_partitions,
    check_name,
    new_baseline,
    plan_figures,
)
from aotcli.api.checking import accept, find_orphans
from aotcli.errors import InputError, RecordError
from aotcli.ir.baseline import Baseline, dump_baseline, load_baseline
from aotcli.ir.joint import JointGraph
from aotcli.ir.trace import CaptureSettings, Trace


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".aotcli")


def baseline(*graphs: JointGraph, name: str = "net", strategy: str = "mincut", test: str = "") -> Baseline:
    trace = sample_trace(*(graphs or (layered(3),)), breaks=())
    plan = api.partition(trace, strategy=strategy, alternatives=False).plan
    return new_baseline(trace, plan, name=name, model="net.py", test=test)


def accepted(store: BaselineStore, name: str = "net", **fields: str) -> Path:
    store.write_new(name, baseline(name=name, **fields))
    store.accept(name, "because")
    return store.path(name)


class TestContent:
    @given(st.integers(0, 5000), st.sampled_from(["mincut", "save-all", "recompute-all", "mincut:aggressive=true"]))
    @settings(max_examples=25, deadline=None)
    def test_the_plan_comes_back_as_it_was_accepted(self, seed: int, strategy: str) -> None:
        trace = sample_trace(random_graph(seed), random_graph(seed + 1))
        plan = api.partition(trace, strategy=strategy, alternatives=False).plan
        made = new_baseline(trace, plan, name="net", model="net.py")
        read = load_baseline(dump_baseline(made))
        assert read == made
        again = accepted_partitions(read)
        assert plan_figures(again) == made.accepted.figures  # type: ignore[union-attr]
        for mine, other in zip(again, plan.partitions, strict=True):
            assert mine.saved == other.saved
            assert (mine.forward_nodes, mine.backward_nodes) == (other.forward_nodes, other.backward_nodes)

    def test_it_is_a_record_that_other_commands_read(self, store: BaselineStore) -> None:
        path = accepted(store)
        trace = api.load(path)
        assert trace == baseline().trace
        assert api.partition(trace).saved_bytes == store.read("net").accepted.figures.saved_bytes  # type: ignore[union-attr]

    def test_the_reason_is_in_no_fingerprint_and_changes_one_line(self) -> None:
        plain = baseline()
        reasoned = dataclasses.replace(plain, accepted=dataclasses.replace(plain.accepted, reason="a new loss"))
        texts = [dump_baseline(each).splitlines() for each in (plain, reasoned)]
        changed = [(a, b) for a, b in zip(*texts, strict=True) if a != b]
        assert changed == [('  "reason": "",', '  "reason": "a new loss",')]

    def test_figures_stand_at_the_head_for_a_reviewer(self) -> None:
        head = dump_baseline(baseline()).splitlines()[:9]
        assert head[1:3] == [' "schema": "aotcli.trace",', ' "schema_version": "1.0",']
        assert any('"saved_bytes":2560' in line for line in head)
        assert any(f'"aotcli": "{__version__}"' in line for line in head)

    def test_layers_are_stored_once(self) -> None:
        few, many = (len(dump_baseline(baseline(layered(layers)))) for layers in (4, 40))
        assert many < few * 1.5

    def test_two_dumps_are_equal(self) -> None:
        assert dump_baseline(baseline()) == dump_baseline(baseline())

    def test_no_absolute_path_is_kept(self) -> None:
        trace = sample_trace(layered(1), breaks=())
        plan = api.partition(trace, alternatives=False).plan
        text = dump_baseline(new_baseline(trace, plan, name="net", model="/home/me/secret/net.py"))
        assert "/home/me" not in text
        assert '"model": "net.py"' in text

    def test_anonymous_records_do_not_name_the_model(self) -> None:
        trace = sample_trace(layered(1), breaks=(), settings=CaptureSettings(level="aten", anonymize=True))
        plan = api.partition(trace, alternatives=False).plan
        text = dump_baseline(new_baseline(trace, plan, name="a", model="secret.py"))
        assert "secret" not in text


class TestAccepting:
    def test_new_becomes_the_baseline(self, store: BaselineStore) -> None:
        new = store.write_new("net", baseline())
        assert (store.read("net"), store.new_names()) == (None, ("net",))
        (found,) = accept(store, ["net"])
        assert not new.exists()
        assert (store.names(), store.new_names()) == (("net",), ())
        assert (found.before, found.now.saved_bytes, found.reason) == (None, 2560, "")
        assert found.nbytes == store.path("net").stat().st_size

    def test_a_change_needs_a_reason(self, store: BaselineStore) -> None:
        accepted(store)
        store.write_new("net", baseline(layered(4)))
        with pytest.raises(InputError, match="no reason was given"):
            accept(store, ["net"], "  ")
        assert store.new_names() == ("net",)
        (found,) = accept(store, ["net"], "one layer\nmore")
        assert found.before is not None
        assert (found.before.saved_bytes, found.now.saved_bytes) == (2560, 3584)
        assert store.read("net").accepted.reason == "one layer more"  # type: ignore[union-attr]

    def test_all_or_none(self, store: BaselineStore) -> None:
        store.write_new("a", baseline(name="a"))
        with pytest.raises(InputError, match="'b'"):
            accept(store, ["a", "b"])
        assert store.names() == ()

    def test_nothing_waits(self, store: BaselineStore) -> None:
        with pytest.raises(InputError) as caught:
            accept(store, ["net"])
        assert caught.value.fix == "check first: aotcli check net"
        store.write_new("gpt2", baseline(name="gpt2"))
        with pytest.raises(InputError) as caught:
            accept(store, ["gtp2"])
        assert caught.value.fix == "did you mean 'gpt2'?"

    def test_a_plain_record_is_not_accepted(self, store: BaselineStore) -> None:
        store.folder.mkdir()
        api.save(sample_trace(), store.new_path("net"))
        with pytest.raises(RecordError, match="no baseline"):
            accept(store, ["net"])

    def test_a_damaged_baseline_is_replaced(self, store: BaselineStore) -> None:
        accepted(store).write_text("nonsense")
        store.write_new("net", baseline())
        (found,) = accept(store, ["net"], "it was damaged")
        assert found.before is None
        assert store.read("net") is not None

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a.new", "-a", "a b", "a\n", "ü", "x" * 121])
    def test_names_that_no_file_should_have(self, store: BaselineStore, name: str) -> None:
        with pytest.raises(InputError, match="cannot name a baseline"):
            store.write_new(name, baseline())
        assert not store.folder.exists()

    @pytest.mark.parametrize("name", ["gpt", "gpt-2.small", "test_gpt-loss", "7b"])
    def test_names_that_are_fine(self, name: str) -> None:
        check_name(name)

    def test_the_folder_cannot_be_made(self, store: BaselineStore) -> None:
        store.folder.write_text("a file")
        with pytest.raises(InputError, match="cannot be"):
            store.write_new("net", baseline())


class TestReading:
    def test_damaged(self, store: BaselineStore) -> None:
        path = accepted(store)
        for text in ("", "nonsense", "{}", path.read_text()[:400], "\0\0", "[" * 100_000):
            path.write_text(text)
            with pytest.raises(RecordError) as caught:
                store.read("net")
            assert "net.aot.json: " in caught.value.what
            assert "aotcli accept net --reason" in caught.value.fix

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("figures", "saved_bytes"), "many"),
            (("figures", "saved_bytes"), 1 << 70),
            (("regions",), []),
            (("regions", 0, "merged"), [1]),
            (("regions", 0, "saved", 0, "ids"), [99_999]),
            (("regions", 0, "saved", 0, "ids"), [-1]),
            (("name",), 3),
        ],
        ids=str,
    )
    def test_a_damaged_plan(self, store: BaselineStore, path: tuple[str | int, ...], value: object) -> None:
        file = accepted(store)
        document = json.loads(file.read_text())
        place = document["baseline"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        file.write_text(json.dumps(document))
        with pytest.raises(RecordError):
            accepted_partitions(store.read("net"))  # type: ignore[arg-type]

    @given(st.integers(0, 30), st.data())
    @settings(max_examples=60, deadline=None)
    def test_a_plan_of_nonsense_is_refused_or_carried_out(self, seed: int, data: st.DataObject) -> None:
        """Never an error of another kind, and never a walk without an end."""
        made = baseline(random_graph(seed))
        assert made.accepted is not None
        region = made.accepted.regions[0]
        places = st.integers(0, len(made.trace.regions[0].nodes) - 1)
        pairs = data.draw(st.lists(st.tuples(places, places), max_size=3))
        saved = tuple(
            dataclasses.replace(group, ids=tuple(data.draw(st.lists(places, max_size=4)))) for group in region.saved
        )
        region = dataclasses.replace(
            region,
            saved=data.draw(st.sampled_from([region.saved, saved])),
            merged=(*region.merged, *(old for old, _ in pairs)),
            into=(*region.into, *(new for _, new in pairs)),
        )
        accepted = dataclasses.replace(made.accepted, regions=(region,))
        with contextlib.suppress(RecordError):
            assert len(accepted_partitions(dataclasses.replace(made, accepted=accepted))) == 1

    def test_a_newer_schema(self, store: BaselineStore) -> None:
        path = accepted(store)
        text = path.read_text()
        path.write_text(text.replace('"schema_version": "1.0"', '"schema_version": "2.0"'))
        with pytest.raises(RecordError) as caught:
            store.read("net")
        assert "version 2.0" in caught.value.what
        assert "update aotcli" in caught.value.fix
        path.write_text(text.replace('"schema_version": "1.0"', '"schema_version": "1.9"'))
        read = store.read("net")
        assert read is not None
        assert "version 1.9" in read.note

    def test_a_field_of_a_later_version_is_passed_over(self, store: BaselineStore) -> None:
        path = accepted(store)
        document = json.loads(path.read_text())
        document["baseline"]["mood"] = "good"
        path.write_text(json.dumps(document))
        assert store.read("net") is not None

    def test_a_copied_file(self, store: BaselineStore) -> None:
        accepted(store)
        store.path("other").write_bytes(store.path("net").read_bytes())
        with pytest.raises(RecordError, match="is the baseline of 'net', not of 'other'"):
            store.read("other")

    def test_a_plain_record(self, store: BaselineStore) -> None:
        store.folder.mkdir()
        api.save(sample_trace(), store.path("net"))
        read = store.read("net")
        assert read is not None
        assert read.accepted is None

    def test_a_folder_in_its_place_is_no_baseline(self, store: BaselineStore) -> None:
        store.path("net").mkdir(parents=True)
        assert store.read("net") is None


class TestOrphans:
    def test_those_that_neither_a_model_nor_a_test_keeps(self, store: BaselineStore) -> None:
        for name, test in (("net", ""), ("old", ""), ("tested", "tests/test_net.py::test_net")):
            accepted(store, name, test=test)
        store.write_new("fresh", baseline(name="fresh"))
        assert [Path(path).name for path in find_orphans(store, ["net"])] == ["old.aot.json"]
        store.path("net").write_text("nonsense")
        assert [Path(path).name for path in find_orphans(store, [])] == ["net.aot.json", "old.aot.json"]

    def test_no_folder_no_orphans(self, store: BaselineStore) -> None:
        assert find_orphans(store, []) == ()


def test_traces_of_several_regions_keep_their_plans() -> None:
    made = baseline(layered(2), two_matmuls())
    read = load_baseline(dump_baseline(made))
    assert isinstance(read.trace, Trace)
    assert read.accepted is not None
    assert len(read.accepted.regions) == 2
