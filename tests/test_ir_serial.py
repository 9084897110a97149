"""Records: they come back exactly, are stable and small, and damaged or hostile ones are refused in words."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls, with_fingerprint
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.errors import RecordError
from aotcli.ir.decode import Budget, graph_from_json
from aotcli.ir.document import Json, Place
from aotcli.ir.encode import Tables, graph_to_json
from aotcli.ir.joint import Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice, Symbol, Tag
from aotcli.ir.serial import dump_trace, load_trace
from aotcli.ir.templates import TemplateReader
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec
from aotcli.ir.trace import CaptureSettings, EagerSaved, Trace


def everything() -> JointGraph:
    """One graph with every kind of node, argument and value."""
    inner = GraphBuilder(name="true_graph_0")
    a = inner.input("a", (2, 3))
    body = inner.build([inner.pointwise("aten.sin.default", a, module="h.0.act", source="net.py:7")])
    g = GraphBuilder(level="inductor")
    w = g.param("primals_1", (3, 3), origin="h.0.fc.weight", mutated=True)
    b = g.buffer("primals_2", (3,), "int64", origin="h.0.bn.num_batches_tracked")
    s = g.symint("s77", hint=2)
    x = g.input("primals_3", ("s77", 3), origin="größe.0", stride=(3, 1))
    state = g.opaque("state", "backward_state", "BackwardState")
    t = g.tangent(shape=("s77", 3))
    g.seed()
    g.seed(backward=True)
    pair = g.op(
        "aten.var_mean.correction",
        x,
        [1],
        shapes=[("s77", 1), ("s77", 1)],
        kwargs={"correction": 0, "keepdim": True},
        module="h.0",
        module_type="Block",
        source="netz_größe.py:12",
        code="y = 'é'",
    )
    part = g.getitem(pair, 1, tags={Tag.IMPURE})
    const = g.op(
        "mylib.odd.default",
        Slice(1, None, s),
        Mapping((("k", w), ("é", (1, "text", "%", "'quoted'")), ("n", None))),
        [float("inf"), -0.0, 1.0, 1, True, 2**40, -(2**62), "dtype torch.float32"],
        [Const("dtype", "torch.float32"), Const("float", "nan"), Const("slice", "odd"), Const("device", "cuda:0")],
        [[[part, [b]], Slice(None, None, None)], Mapping(())],
        shape=(3,),
        dtype="float16",
        storage_of=w,
        kwargs={"generator": None, "nested": [x, [x]], "state": state},
        flops=None,
        checkpoint="MUST_SAVE",
        ac_graph_id=3,
        region_budget=0.25,
        mutable_args=("out", "buf"),
        name="odd_7",
        tags={Tag.RANDOM, Tag.NON_BUILTIN},
    )
    body_ref = g.subgraph("true_graph_0", body)
    call = g.op("higher_order.cond", body_ref, [x], value=(g.value(x), SymbolSpec("bool", "s77 > 3", False)), flops=9)
    size = g.sym_size(x, 0, "2*s77", binds="u0")
    none = g.op("aten._assert_async.msg", part, "no", value=None)
    sparse = g.op("aten.to_sparse.default", x, value=dataclasses.replace(g.spec((2, 3)), storage=-1, stride=()))
    view = g.op("aten.view.default", x, [-1], shape=("3*s77",), storage_of=x, stride=(1,), module="h.10.a.3")
    grad = g.pointwise("aten.mul.Tensor", t, view, shape=("s77", 3))
    return g.build(
        [call, const, size, none, 3, None, Const("symbol", "s77")],
        [grad, sparse, None],
        symbols=(Symbol("s77", "L['x'].size()[0]", 2, 2, None), Symbol("u0", "", None, 0, 2**62)),
    )


TRACES = {
    "two matmuls": sample_trace(),
    "everything": sample_trace(everything()),
    "layers": sample_trace(layered(9, level="inductor")),
    "regions": sample_trace(two_matmuls(), layered(4), random_graph(3)),
    "header": sample_trace(
        loss=True,
        train=False,
        tensors="real",
        mutations=("buffer bn.running_mean",),
        side_effects=("list append",),
        hooks=("hook on h.0",),
        guards=("L['x'].size()[0] >= 2",),
        notes=("traced on real tensors: größe",),
        eager=None,
        settings=CaptureSettings("aten", "cuda", "bfloat16", "float16", True, "real", 7, False, False,
                                 ("f32[2]",), (("layers", "4"),), True),
    ),
    "eager": sample_trace(eager=EagerSaved(2**60, 0, 1)),
    "no regions": dataclasses.replace(sample_trace(), regions=()),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_comes_back_exactly(name):
    trace = TRACES[name]
    text = dump_trace(trace, source=True)
    loaded = load_trace(text)
    assert loaded == trace
    assert [region.fingerprint for region in loaded.regions] == [region.fingerprint for region in trace.regions]
    assert dump_trace(loaded, source=True) == text


@given(st.integers(0, 100_000), st.integers(5, 60))
@settings(max_examples=60, deadline=None)
def test_random_graphs_come_back_exactly(seed, size):
    trace = sample_trace(random_graph(seed, size, size))
    text = dump_trace(trace)
    assert load_trace(text) == trace
    assert dump_trace(load_trace(text)) == text


# Arbitrary nodes, valid or not: encoding is not to depend on what the verifier allows.

TEXTS = ("", "a", "%", "'", "é", "#", "=", "h.0", "a@b ~", "x_1", "\u2028", "0", "𝛼")
DIMS = (0, 1, 4, "s0", "2*s0 + 1")


class Arbitrary:
    """Nodes with anything in any field, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        return self.rng.choice(TEXTS)

    def maybe(self, value):
        return self.rng.choice([None, value])

    def several(self, make, most: int = 3) -> tuple:
        return tuple(make() for _ in range(self.rng.randint(0, most)))

    def path(self) -> str | None:
        return self.maybe(".".join(self.several(lambda: self.rng.choice((*TEXTS, "0", "3", "11", "03")), 4)))

    def dictionary(self, make) -> tuple:
        return tuple({self.text(): make() for _ in range(self.rng.randint(0, 2))}.items())

    def arg(self, nodes: list[Node], depth: int = 0):
        rng = self.rng
        plain = [None, True, False, 1, 0, -(2**63), 2**63, 1.0, -0.0, 1e-300, float("inf"), self.text()]
        kinds = ("dtype", "op", "slice", "dict", "float", "const", "")
        choices = [lambda: rng.choice(plain), lambda: Const(rng.choice(kinds), self.text())]
        if nodes:
            choices += [lambda: Ref(rng.choice(nodes).name)] * 3
        if depth < 3:
            again = lambda: self.arg(nodes, depth + 1)  # noqa: E731
            choices += [
                lambda: self.several(again),
                lambda: Slice(again(), again(), again()),
                lambda: Mapping(self.dictionary(again)),
            ]
        return rng.choice(choices)()

    def value(self, depth: int = 0):
        rng = self.rng
        roll = rng.random()
        if roll < 0.15 and depth < 3:
            return self.several(lambda: self.value(depth + 1))
        if roll < 0.25:
            return SymbolSpec(self.text(), self.text(), rng.choice([None, True, 3, 0.5]))
        if roll < 0.35:
            return rng.choice([None, OpaqueSpec(self.text(), self.text())])
        shape = self.several(lambda: rng.choice(DIMS))
        hint = self.maybe(self.several(lambda: rng.randint(0, 9)))
        dtype, device = rng.choice(["float32", "bfloat16", "a@b ~"]), rng.choice(["cpu", "cuda:1"])
        return TensorSpec(
            shape, self.several(lambda: rng.choice(DIMS)), dtype, device,
            rng.randint(0, 3), rng.randint(-1, 6), rng.randint(0, 3), hint,
        )  # fmt: skip

    def node(self, nodes: list[Node]) -> Node:
        rng = self.rng
        name = rng.choice((*TEXTS, "add", "mm", "primals", "add_0"))
        while any(node.name == name for node in nodes):
            name += f"_{rng.randint(0, 12)}"
        return Node(
            name=name,
            kind=rng.choice(list(NodeKind)),
            target=rng.choice([name, "aten.add.Tensor", "odd", ""]),
            args=self.several(lambda: self.arg(nodes)),
            kwargs=self.dictionary(lambda: self.arg(nodes)),
            value=self.value(),
            module=self.path(),
            module_type=self.maybe(self.text()),
            source=self.maybe(self.text()),
            code=self.maybe(self.text()),
            origin=self.path(),
            partitioner_tag=rng.choice([None, "is_forward", "is_backward"]),
            checkpoint=self.maybe("MUST_SAVE"),
            ac_graph_id=self.maybe(rng.randint(0, 3)),
            region_budget=self.maybe(rng.random()),
            tags=frozenset(rng.sample(list(Tag), rng.randint(0, 3))),
            mutable_args=self.several(self.text, 2),
            binds=self.maybe(self.text()),
            flops=rng.choice([None, 0, 2**60]),
        )


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_any_node_comes_back_exactly(seed):
    arbitrary = Arbitrary(seed)
    nodes: list[Node] = []
    for _ in range(arbitrary.rng.randint(0, 10)):
        nodes.append(arbitrary.node(nodes))
    graph = JointGraph(tuple(nodes), arbitrary.rng.randint(0, 9), arbitrary.text(), name=arbitrary.text())
    tables = Tables()
    data = graph_to_json(graph, tables, source=True)
    document = {"specs": tables.specs, "ops": tables.ops, "places": tables.places, "templates": tables.templates}
    templates = TemplateReader(json.loads(json.dumps(document))).templates(document)
    assert graph_from_json(json.loads(json.dumps(data)), templates, Budget(), Place("")) == graph


# What the file looks like.


def test_schema_and_version_come_first_and_the_text_is_stable():
    text = dump_trace(TRACES["everything"])
    assert list(json.loads(text))[:2] == ["schema", "schema_version"]
    assert text.startswith('{\n "schema": "aotcli.trace",\n "schema_version": "1.0",\n')
    assert text.endswith("}\n")
    assert dump_trace(copy.deepcopy(TRACES["everything"])) == text


def test_repeated_layers_are_stored_once():
    short, long = (dump_trace(sample_trace(layered(layers))) for layers in (12, 96))
    assert len(long) < len(short) + 84 * 12  # what is left is one output for each weight
    assert long.count('"repeat"') == short.count('"repeat"') == 3  # weights, forward, backward
    assert max(len(line) for line in long.splitlines()) < 140


def test_an_op_more_changes_few_lines():
    def lines(*, extra: bool) -> list[str]:
        g = GraphBuilder()
        x = g.input("x", (4,))
        for i in range(30):
            x = g.pointwise(f"aten.op{i}.default", x, module=f"m{i}")
            if extra and i == 10:
                x = g.pointwise("aten.neg.default", x, module="m10")
        return dump_trace(sample_trace(g.build([x], fingerprinted=False))).splitlines()

    before, after = lines(extra=False), lines(extra=True)
    assert len(set(after) - set(before)) <= 3
    assert len(set(before) - set(after)) <= 1


def test_source_text_is_kept_only_where_asked_for():
    trace = TRACES["everything"]
    assert "y = 'é'" not in dump_trace(trace)
    assert "y = 'é'" in dump_trace(trace, source=True)
    without = load_trace(dump_trace(trace))
    assert all(node.code is None for node in without.regions[0].nodes)
    assert without.regions[0].fingerprint == trace.regions[0].fingerprint


def test_every_field_of_a_node_is_written():
    # A field that is new must be written by aotcli/ir/encode.py and read by aotcli/ir/decode.py.
    graph = everything()
    odd = graph["odd_7"]
    fields = {field.name: field.default for field in dataclasses.fields(Node)}
    unset = {name for name, default in fields.items() if getattr(odd, name) == default}
    other = graph["var_mean"]
    assert {name for name in unset if getattr(other, name) == fields[name]} == {"origin", "binds", "partitioner_tag"}
    assert graph["primals_1"].origin
    assert graph["sym_size"].binds
    assert graph["mul"].partitioner_tag


def test_what_stands_at_its_default_need_not_be_there():
    document = json.loads(dump_trace(sample_trace()))
    for key in ("loss", "train", "tensors", "breaks", "mutations", "guards", "eager", "notes"):
        del document[key]
    trace = load_trace(json.dumps(document))
    assert trace.eager is None
    assert trace.regions == sample_trace().regions


# Versions.


def with_version(version: str, **extra: Json) -> str:
    document = json.loads(dump_trace(sample_trace()))
    document["schema_version"] = version
    return json.dumps(document | extra)


def test_a_newer_minor_version_is_read_with_a_note():
    document = json.loads(with_version("1.7", new_thing={"a": [1]}))
    document["model"]["colour"] = "blue"
    document["ops"]["aten.relu.default"].append("a_new_tag")
    document["templates"]["relu"]["mood"] = "good"
    trace = load_trace(json.dumps(document))
    assert trace.regions == sample_trace().regions
    assert trace.notes == ("the record is of version 1.7, newer than 1.0: what is new in it was left out",)


def test_a_newer_major_version_is_refused():
    with pytest.raises(RecordError) as caught:
        load_trace(with_version("2.0"))
    assert "version 2.0; this aotcli reads 1.x" in str(caught.value)
    assert "update aotcli" in caught.value.fix


@pytest.mark.parametrize("version", ["", "1", "1.0.0", "one", "99999.0", "-1.0", 1, None, []])
def test_a_version_that_is_none_is_damage(version):
    with pytest.raises(RecordError):
        load_trace(with_version(version))


# Damage.


def test_every_truncation_is_refused():
    text = dump_trace(sample_trace())
    for length in range(0, len(text) - 2, 7):
        with pytest.raises(RecordError) as caught:
            load_trace(text[:length])
        assert "cut short" in str(caught.value) or "empty" in str(caught.value)


DAMAGE = {
    "aotcli.plan": ('"schema": "aotcli.trace"', '"schema": "aotcli.plan"'),
    "aotcli.partition": ('"schema": "aotcli.trace"', '"schema": "aotcli.partition"'),
    "not a trace": ('"schema": "aotcli.trace"', '"schema": "other"'),
    "no model": ('"model"', '"modell"'),
    "no regions": ('"regions"', '"regionen"'),
    "no templates": ('"templates"', '"templaten"'),
    "unknown template": ('["mm",2,0]', '["nn",2,0]'),
    "too few integers": ('["mm",2,0]', '["mm",2]'),
    "too many integers": ('["mm",2,0]', '["mm",2,0,0]'),
    "a reference forward": ('["mm",2,0]', '["mm",2,99]'),
    "a reference before the start": ('["mm",2,0]', '["mm",2,-99]'),
    "a reference to itself": ('["mm",2,0]', '["mm",2,4]'),
    "a fraction": ('["mm",2,0]', '["mm",2,0.5]'),
    "a boolean": ('["mm",2,0]', '["mm",2,true]'),
    "a step outside a run": ('["mm",2,0]', '["mm",2,[0,1]]'),
    "an empty row": ('["mm",2,0]', "[]"),
    "a huge reference": ('["mm",2,0]', f'["mm",2,{10**30}]'),
    "unknown spec": ('"value":"f32 2x16"', '"value":"f32 9x9"'),
    "storage of no reference": ('"value":"f32 16x2@0"', '"value":"f32 16x2@7"'),
    "storage of no part": ('"value":"f32 16x2@0"', '"value":"f32 16x2@0.3"'),
    "storage that is no number": ('"value":"f32 16x2@0"', '"value":"f32 16x2@x"'),
    "unknown place": ('"at":"act"', '"at":"attt"'),
    "unknown tag": ('"pointwise"', '"blue"'),
    "unknown kind": ('"kind":"param"', '"kind":"parameter"'),
    "an unquoted string": ('"args":["%",', '"args":["x",'),
    "NaN": ('"flops":512', '"flops":NaN'),
    "a huge float": ('"flops":512', '"flops":1e999'),
    "negative flops": ('"flops":512', '"flops":-1'),
    "a string for a number": ('"num_forward_outputs": 1', '"num_forward_outputs": "1"'),
    "more outputs than there are": ('"num_forward_outputs": 1', '"num_forward_outputs": 9'),
    "a null for an object": ('"environment": {', '"environment": null, "e": {'),
    "a shape that is no list": ('"shape":[2,16]', '"shape":3'),
    "a negative size": ('"shape":[2,16]', '"shape":[-2,16]'),
    "a size beyond all memory": ('"shape":[2,16]', '"shape":[9223372036854775807,16]'),
    "bytes that do not fit": ('"nbytes":128', '"nbytes":127'),
    "negative bytes": ('"nbytes":128', '"nbytes":-128'),
    "half a character": ('"source":"net.py:4"', '"source":"\\ud800"'),
    "a text with no end": ('"source":"net.py:4"', '"source":"net.py:4'),
    "a number of 5000 digits": ('"flops":512', f'"flops":{"1" * 5000}'),
    "static input that is none": ('"level": "aten"', '"level": "aten", "static_inputs": ["gone"]'),
    "unknown level": ('"level": "aten",\n   "has', '"level": "other",\n   "has'),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_refused_in_words(what):
    old, new = DAMAGE[what]
    text = dump_trace(sample_trace())
    assert old in text
    with pytest.raises(RecordError) as caught:
        load_trace(text.replace(old, new))
    message = str(caught.value)
    assert len(message) < 1500
    assert caught.value.exit_code == 2
    assert "Traceback" not in message


def test_damage_says_where():
    with pytest.raises(RecordError, match=r"damaged at regions\[0\]\.nodes\[4\]"):
        load_trace(dump_trace(sample_trace()).replace(*DAMAGE["unknown template"]))
    with pytest.raises(RecordError, match=r"damaged at ops\.aten\.relu\.default"):
        load_trace(dump_trace(sample_trace()).replace(*DAMAGE["unknown tag"]))


NO_RECORDS = ["", " ", "null", "[]", "3", '"x"', "{}", "\x00", "<svg/>", "{" * 99_999, "[" * 99_999]


@pytest.mark.parametrize("text", NO_RECORDS)
def test_what_is_no_record_at_all(text):
    with pytest.raises(RecordError):
        load_trace(text)


def parts(data: Json, path: tuple = ()) -> Iterator[tuple]:
    yield path
    if isinstance(data, (dict, list)):
        for key, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from parts(part, (*path, key))


JUNK: tuple[Json, ...] = (
    None, True, -1, 0, 1, 2**70, 1.5, "", "x", "%", "'", "é.0", [], [1], [[]], {}, {"a": 1}, ["mm", 1], [0, [1, 2]],
    {"repeat": 2, "rows": []}, {"repeat": 3, "rows": ["output"]}, {"slice": [1, 2, 3]}, {"float": "x"}, {"dict": [1]},
)  # fmt: skip


@pytest.mark.parametrize("name", ["two matmuls", "everything", "layers"])
@pytest.mark.parametrize("seed", range(3))
def test_any_part_may_be_anything(name, seed):
    """Each part of a record replaced by junk: it loads or is refused, and nothing else happens."""
    rng = random.Random(seed)
    text = dump_trace(TRACES[name])
    places = list(parts(json.loads(text)))
    for path in rng.sample(places, min(250, len(places))):
        document = json.loads(text)
        if not path:
            continue
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = rng.choice(JUNK)
        with contextlib.suppress(RecordError):
            dump_trace(load_trace(json.dumps(document)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_flipped_characters(data):
    text = dump_trace(TRACES["two matmuls"])
    position = data.draw(st.integers(0, len(text) - 1))
    with contextlib.suppress(RecordError):
        load_trace(text[:position] + data.draw(st.characters()) + text[position + 1 :])


# Hostile files: small ones that ask for much. Run apart, with their memory watched.

HOSTILE = """
import json, resource, sys, time
from pathlib import Path
from aotcli.errors import RecordError
from aotcli.ir.serial import load_trace, load_plan

base = json.loads(open(sys.argv[1], encoding="utf-8").read())

def variant(change):
    document = json.loads(json.dumps(base))
    change(document)
    return json.dumps(document)

def set_nodes(document, *items):
    document["regions"][0]["nodes"] = list(items)

def many_leaves(document):
    document["templates"]["x"] = {"op": "a.b.c", "value": ["f32 2x16"] * 100_000}
    set_nodes(document, {"repeat": 1_000_000, "rows": ["x"]})

def long_names(document):
    document["templates"]["x"] = {"op": "a.b.c", "name": "n" * 1_000_000}
    set_nodes(document, {"repeat": 1_000_000, "rows": ["x"]})

def long_paths(document):
    document["places"]["p"] = {"module": "h.#." + "m" * 1_000_000}
    document["templates"]["x"] = {"op": "a.b.c", "at": "p", "layer": True}
    set_nodes(document, {"repeat": 1_000_000, "rows": [["x", [0, 1]]]})

def many_arguments(document):
    document["templates"]["x"] = {"op": "a.b.c", "args": [["%"] * 50_000]}
    set_nodes(document, "primals", {"repeat": 1_000_000, "rows": [["x", *[0] * 50_000]]})

def nested_arguments(document):
    inner = "%"
    for _ in range(300):
        inner = [inner]
    document["templates"]["mm"]["args"] = [inner, "%"]

def nested_graphs(document):
    graph = json.loads(json.dumps(document["regions"][0]))
    for _ in range(100):
        graph = dict(graph, subgraphs=[["g", graph]])
    document["regions"][0] = graph

def nested_values(document):
    inner = "f32 2x16"
    for _ in range(300):
        inner = [inner]
    document["templates"]["mm"]["value"] = inner

def peak():
    # ru_maxrss of a child begins at its parent's size; VmHWM begins anew.
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS: bytes

cases = {
    "a run of a million": variant(lambda d: set_nodes(d, {"repeat": 1_000_000, "rows": ["primals"] * 1000})),
    "a run of a billion": variant(lambda d: set_nodes(d, {"repeat": 10**9, "rows": ["primals"]})),
    "many runs": variant(lambda d: set_nodes(d, *[{"repeat": 1_000_000, "rows": ["primals"]}] * 1000)),
    "many leaves": variant(many_leaves),
    "long names": variant(long_names),
    "long paths": variant(long_paths),
    "many arguments": variant(many_arguments),
    "nested arguments": variant(nested_arguments),
    "nested graphs": variant(nested_graphs),
    "nested values": variant(nested_values),
    "deep": "[" * 5_000_000,
    "deep objects": '{"a":' * 1_000_000,
    "wide": "[" + "[]," * 8_000_000 + "[]]",
    "many objects": "[" + '{"a":{}},' * 249_000 + "{}]",
    "many strings": "[" + '"ab",' * 1_990_000 + '""]',
    "many numbers": "[" + "300," * 1_990_000 + "1]",
    "one string": '"' + "x" * 20_000_000 + chr(0x1F600) + '"',
    "digits": "9" * 10_000_000,
    "long key": '{"' + "k" * 20_000_000 + '":1}',
}
for name, text in cases.items():
    start = time.perf_counter()
    try:
        load_trace(text)
        print(name, "was read")
    except RecordError as error:
        if len(str(error)) > 2000:
            print(name, "has a long message")
    elapsed = time.perf_counter() - start
    peak_mib = peak()
    print(f"{name}: {elapsed:.1f} s, {peak_mib:.0f} MiB", file=sys.stderr)
    if peak_mib > 500:
        print(name, "took", peak_mib, "MiB")
        break
"""


def test_hostile_files_are_refused_within_bounds(tmp_path):
    good = tmp_path / "good.aot.json"
    good.write_text(dump_trace(sample_trace()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, str(good)], capture_output=True, text=True, timeout=300, check=False,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_loaded_graph_is_verified():
    document = json.loads(dump_trace(sample_trace()))
    document["regions"][0]["nodes"].remove("output") if "output" in document["regions"][0]["nodes"] else None
    document["regions"][0]["nodes"] = document["regions"][0]["nodes"][:-1]
    with pytest.raises(RecordError, match="its last node is not the output"):
        load_trace(json.dumps(document))


def test_a_record_needs_no_torch():
    code = "import sys; from aotcli.ir import serial; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[1]).returncode == 0


def test_a_fingerprint_in_the_file_is_that_of_its_graph():
    loaded = load_trace(dump_trace(TRACES["everything"])).regions[0]
    assert with_fingerprint(loaded).fingerprint == loaded.fingerprint


def test_traces_of_other_types_do_not_slip_through():
    assert isinstance(load_trace(dump_trace(sample_trace())), Trace)
    nodes = load_trace(dump_trace(TRACES["everything"])).regions[0].nodes
    assert {type(node.tags) for node in nodes} == {frozenset}
    assert all(type(node.kind) is NodeKind and type(tag) is Tag for node in nodes for tag in node.tags)
