"""`--input` and `--set`: what parses to what, and what the errors point at."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from typing import Literal

import pytest

from aotcli.capture.inputs import InputSpec, materialize_inputs, parse_input, parse_inputs, torch_dtype_name
from aotcli.capture.overrides import Overrides, missing_arguments
from aotcli.errors import WorkloadError


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("i64[2,128]<50257", InputSpec("", None, "int64", (2, 128), high=50257)),
        ("f32[8,3,224,224]", InputSpec("", None, "float32", (8, 3, 224, 224))),
        ("mask=bool[2,128]", InputSpec("", "mask", "bool", (2, 128))),
        ("mask = i64[ 2 , 3 ] = 1", InputSpec("", "mask", "int64", (2, 3), fill=1)),
        ("bf16[4]>=-1<2.5", InputSpec("", None, "bfloat16", (4,), low=-1, high=2.5)),
        ("i8[3]<7>=5", InputSpec("", None, "int8", (3,), low=5, high=7)),
        ("f32[]", InputSpec("", None, "float32", ())),
        ("float16[1]", InputSpec("", None, "float16", (1,))),
        ("long[0,4]", InputSpec("", None, "int64", (0, 4))),
        ("scale=0.5", InputSpec("", "scale", value=0.5)),
        ("n=3", InputSpec("", "n", value=3)),
        ("true", InputSpec("", None, value=True)),
        ("mode='fast=1'", InputSpec("", "mode", value="fast=1")),
        ("mask=None", InputSpec("", "mask", value=None)),
    ],
)
def test_specs_that_parse(text: str, spec: InputSpec) -> None:
    parsed = parse_input(text)
    assert (parsed.name, parsed.dtype, parsed.shape) == (spec.name, spec.dtype, spec.shape)
    assert (parsed.low, parsed.high, parsed.fill, parsed.value) == (spec.low, spec.high, spec.fill, spec.value)


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("i65[2]", 1, "i64"),
        ("x=bflat16[2]", 3, "bfloat16"),
        ("f32[2,]", 7, ""),
        ("f32[2,-1]", 7, ""),
        ("f32[2", 6, ""),
        ("f32[2]<", 7, ""),
        ("f32[2]<a", 7, ""),
        ("f32[2]<1<2", 9, ""),
        ("f32[2]=1<2", 11, ""),
        ("i64[2]<0", 9, ""),
        ("bool[2]<2", 10, ""),
        ("", 1, ""),
        ("hello", 1, ""),
    ],
)
def test_errors_point_at_the_character(text: str, position: int, hint: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_input(text)
    what, shown, pointer = caught.value.what.splitlines()
    assert f"at character {position}" in what
    assert shown == f"  {text}"
    assert pointer.index("^") == 2 + position - 1
    assert hint in caught.value.fix


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(WorkloadError, match="'x' is given twice"):
        parse_inputs(("x=f32[1]", "x=f32[2]"))


def test_dtype_names_in_both_spellings() -> None:
    assert torch_dtype_name("bf16", option="--dtype") == torch_dtype_name("torch.bfloat16", option="--dtype")
    with pytest.raises(WorkloadError, match="--dtype: unknown dtype 'bf61'") as caught:
        torch_dtype_name("bf61", option="--dtype")
    assert "bf16" in caught.value.fix


def test_materialized_values_lie_in_their_range() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    texts = ("i64[1000]>=5<8", "x=f32[1000]>=2<3", "u8[1000]", "m=bool[1000]", "i32[4]=7", "f64[]", "s=2", "c64[3]")
    (ranged, small, filled, scalar, complex_), named = materialize_inputs(parse_inputs(texts))
    assert set(ranged.tolist()) == {5, 6, 7}
    assert 2 <= named["x"].min() <= named["x"].max() < 3
    assert (small.dtype, set(small.tolist())) == (torch.uint8, {0, 1})
    assert (named["m"].dtype, set(named["m"].tolist())) == (torch.bool, {True, False})
    assert (filled.dtype, filled.tolist()) == (torch.int32, [7] * 4)
    assert (scalar.dtype, scalar.dim(), named["s"]) == (torch.float64, 0, 2)
    assert complex_.dtype == torch.complex64


class Act(Enum):
    RELU = "relu"
    GELU = "gelu"


def factory(
    width: int = 8,
    rate: float = 0.1,
    bias: bool = True,
    name: str = "x",
    act: Act = Act.RELU,
    depth: int | None = None,
    kind: Literal["a", "b"] = "a",
    sizes: tuple[int, ...] = (1, 2),
    plain=3,
) -> None: ...


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("width", "16", 16),
        ("rate", "1e-2", 0.01),
        ("bias", "no", False),
        ("bias", "1", True),
        ("name", "7", "7"),
        ("act", "gelu", Act.GELU),
        ("act", "GELU", Act.GELU),
        ("depth", "none", None),
        ("depth", "4", 4),
        ("kind", "b", "b"),
        ("sizes", "3,4", (3, 4)),
        ("sizes", "[5]", (5,)),
        ("plain", "2.5", 2.5),
    ],
)
def test_set_converts_as_the_annotation_or_the_default_says(key: str, text: str, value: object) -> None:
    found = Overrides([(key, text)]).arguments(factory)[key]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("key", "text"), [("width", "wide"), ("bias", "maybe"), ("act", "tanh"), ("kind", "c")])
def test_set_refuses_what_does_not_convert(key: str, text: str) -> None:
    with pytest.raises(WorkloadError, match=f"--set {key}={text}"):
        Overrides([(key, text)]).arguments(factory)


def test_a_key_that_nothing_takes_names_the_nearest() -> None:
    overrides = Overrides([("widht", "8")])
    assert overrides.arguments(factory) == {}
    with pytest.raises(WorkloadError, match="has no setting 'widht'") as caught:
        overrides.check_used("m.py")
    assert "width" in caught.value.fix


def test_missing_arguments_are_those_without_default() -> None:
    def build(config: object, width: int = 1, *, head: int) -> None: ...

    assert missing_arguments(build, {"head"}) == ["config"]


def test_parsing_and_loading_by_name_import_no_torch() -> None:
    code = (
        "import sys; import aotcli.capture.cache, aotcli.capture.inputs\n"
        "from aotcli.capture.workload import load_workload; from aotcli.ir.trace import CaptureSettings\n"
        "load_workload('sample_models/gpt.py', CaptureSettings(inputs=('i64[2]',)))\n"
        "load_workload('hf:llama', CaptureSettings()); load_workload('a.b:c', CaptureSettings())\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
