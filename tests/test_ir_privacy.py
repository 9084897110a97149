from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, sample_trace
from hypothesis import given
from hypothesis import strategies as st

from aotcli.ir.joint import Const
from aotcli.ir.privacy import has_absolute_path, hashed, hashed_path, hashed_source, without_paths
from aotcli.ir.serial import dump_trace, load_trace
from aotcli.ir.trace import CaptureSettings, GraphBreak, Trace


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/me/project/net.py:3", "net.py:3"),
        ("sample_models/gpt.py:47", "sample_models/gpt.py:47"),
        ("torch/nn/functional.py:12", "torch/nn/functional.py:12"),
        ('File "/home/me/net.py", line 3', 'File "net.py", line 3'),
        ("at /tmp/a/b/c.py:1 and /x/y", "at c.py:1 and y"),
        ("file:///home/me/net.py", "net.py"),
        ("C:\\Users\\me\\net.py:3", "net.py:3"),
        ("C:\\net.py", "net.py"),
        ("//server/share/net.py", "net.py"),
        ("2*s0 // 3 and a/b", "2*s0 // 3 and a/b"),
        ("s0/2", "s0/2"),
        ("L['x'].size()[0] >= 2", "L['x'].size()[0] >= 2"),
        ("(/home/me/x.py)", "(x.py)"),
        ("path=/home/me/x", "path=x"),
        ("../x/y.py", "../x/y.py"),
        ("", ""),
    ],
)
def test_absolute_paths_are_cut_to_their_last_part(text, left):
    assert without_paths(text) == left
    assert has_absolute_path(text) == (text != left)


@given(st.text(alphabet="/\\aC: .", max_size=12))
def test_what_is_left_has_no_absolute_path(text):
    assert not has_absolute_path(without_paths(text))


SECRET = "/home/jdoe/secret-project/net.py"


def told() -> list[str]:
    """The texts of a record whose every field holds an absolute path."""
    g = GraphBuilder()
    g.symint("s0", hint=2, source=f"L['{SECRET}']")
    x = g.input("x", ("s0",), source=f"{SECRET}:1")
    inner = GraphBuilder(name="body")
    body = inner.build([inner.pointwise("aten.sin.default", inner.input("a", (2,)), source=f"{SECRET}:2")])
    ref = g.subgraph("body", body)
    y = g.op("higher_order.invoke", ref, [x], shape=("s0",), source=f"{SECRET}:3", module="h", code=f"open('{SECRET}')")
    trace = sample_trace(
        g.build([y]),
        breaks=(GraphBreak(f"call of {SECRET}", f"{SECRET}:9"),),
        mutations=(f"buffer {SECRET}",),
        side_effects=(f"writes {SECRET}",),
        hooks=(SECRET,),
        guards=(f'check "{SECRET}"',),
        notes=(f"traced on real tensors: {SECRET}:4 failed",),
        settings=CaptureSettings(inputs=(SECRET,), overrides=(("path", SECRET),)),
    )
    trace = dataclasses.replace(trace, model=dataclasses.replace(trace.model, spec=SECRET))
    return [dump_trace(trace), dump_trace(dataclasses.replace(trace, settings=CaptureSettings(anonymize=True)))]


def test_no_field_of_a_record_tells_an_absolute_path():
    for text in told():
        assert "jdoe" not in text
        assert "/home" not in text
    assert "net.py:9" in told()[0]


# Anonymous records.


def test_stand_ins_are_stable_and_hashing_twice_changes_nothing():
    assert hashed("encoder") == hashed("encoder") != hashed("decoder")
    assert hashed(hashed("encoder")) == hashed("encoder")
    assert hashed("") == ""
    assert hashed_path("h.3.fc") == f"{hashed('h')}.3.{hashed('fc')}"
    assert hashed_path(hashed_path("h.3.fc")) == hashed_path("h.3.fc")
    assert hashed_source("net.py:12") == f"{hashed('net.py')}:12"


def secretive() -> Trace:
    g = GraphBuilder()
    w = g.param("primals_1", (2, 2), origin="secretnet.3.weight")
    x = g.input("primals_2", (2, 2), origin="secretinput")
    h = g.opaque("handle", type_name="SecretHandle")
    y = g.matmul(
        x, w, (2, 2), module="secretnet.3", module_type="SecretLinear", source="secretfile.py:3", code="secretcode()"
    )
    z = g.op("aten.add.Tensor", y, Const("other", "SecretConst"), [Const("other", "SecretConst"), h], shape=(2, 2))
    overrides = (("secret", "secret"),)
    settings = CaptureSettings(anonymize=True, with_source=True, inputs=("secret f32[2]",), overrides=overrides)
    trace = sample_trace(
        g.build([z]),
        settings=settings,
        breaks=(GraphBreak("secret reason", "secretfile.py:9"),),
        mutations=("buffer secretnet.running",),
        side_effects=("secret",),
        hooks=("secret",),
        guards=("secret",),
        notes=("secret",),
    )
    model = dataclasses.replace(trace.model, name="secretmodel", spec="secretfile.py", inputs=("secretinput f32[2,2]",))
    return dataclasses.replace(trace, model=model)


def test_an_anonymous_record_tells_no_name():
    trace = secretive()
    text = dump_trace(trace, source=True)
    assert "secret" not in text.lower()
    assert "f32[2,2]" in text
    assert "aten.mm.default" in text
    loaded = load_trace(text)
    assert loaded.regions[0].fingerprint == trace.regions[0].fingerprint
    assert loaded.regions[0]["mm"].module == hashed_path("secretnet.3")
    assert loaded.mutations == (f"buffer {hashed_path('secretnet.running')}",)
    assert dump_trace(loaded, source=True) == text


def test_names_stay_unless_asked():
    trace = dataclasses.replace(secretive(), settings=CaptureSettings())
    assert load_trace(dump_trace(trace, source=True)) == trace
