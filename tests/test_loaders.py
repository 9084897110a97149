"""Naming a model: what each form gives, and what the errors say."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aotcli.capture.workload import BuiltWorkload, FakeBuildFailed, build, load_workload, object_workload
from aotcli.errors import EnvironmentProblem, WorkloadError
from aotcli.ir.trace import CaptureSettings

torch = pytest.importorskip("torch")
HEAD = "import torch\nfrom torch import nn\n"

Build = Callable[..., BuiltWorkload]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the current folder."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture
def make(project: Path) -> Build:
    """`make(code, NAME, **settings)` writes m.py and builds it on fake tensors."""

    def make(code: str, name: str = "", *, fake: bool = True, **settings: Any) -> BuiltWorkload:
        (project / "m.py").write_text(HEAD + code)
        overrides = tuple(settings.pop("sets", {}).items())
        given = CaptureSettings(overrides=overrides, **settings)
        return build(load_workload(f"m.py:{name}" if name else "m.py", given), given, fake=fake)

    return make


def shapes(built: BuiltWorkload) -> list[tuple[int, ...]]:
    return [tuple(each.shape) for each in (*built.args, *built.kwargs.values())]


def run(built: BuiltWorkload) -> Any:
    if built.fake_mode is None:
        return built.step(*built.args, **built.kwargs)
    with built.fake_mode:
        return built.step(*built.args, **built.kwargs)


# What a file may give.


@pytest.mark.parametrize(
    "model",
    [
        "model = nn.Linear(4, 3)",
        "def model(): return nn.Linear(4, 3)",
        "def model(width=3): return nn.Linear(4, width)",
        "class model(nn.Linear):\n  def __init__(self): super().__init__(4, 3)",
        "def model(x): return x @ torch.ones(4, 3)",
        "def model():\n  w = torch.ones(4, 3)\n  return lambda x: x @ w",
        "model = torch.compile(nn.Linear(4, 3))",
    ],
)
@pytest.mark.parametrize(
    "inputs",
    [
        "inputs = torch.ones(2, 4)",
        "inputs = (torch.ones(2, 4),)",
        "inputs = [torch.ones(2, 4)]",
        "inputs = ((torch.ones(2, 4),), {})",
        "def inputs(batch=2): return (torch.ones(batch, 4),)",
    ],
)
def test_forms_of_model_and_inputs(make: Build, model: str, inputs: str) -> None:
    built = make(f"{model}\n{inputs}")
    assert run(built).shape == (2, 3)
    assert (built.loss_inside, built.fake_mode is not None) == (False, True)


def test_inputs_by_name_and_a_factory_of_the_model(make: Build) -> None:
    built = make("model = nn.Linear(4, 3)\ndef inputs(model): return {'input': torch.ones(2, model.in_features)}")
    assert list(built.kwargs) == ["input"]
    assert run(built).shape == (2, 3)


def test_set_fills_both_factories(make: Build) -> None:
    code = "def model(w=4): return nn.Linear(w, 1)\ndef inputs(batch=2, w=4): return (torch.ones(batch, w),)"
    assert shapes(make(code, sets={"w": "6", "batch": "3"})) == [(3, 6)]


def test_set_can_fill_a_required_argument_of_a_factory(make: Build) -> None:
    assert (
        make("def model(w): return nn.Linear(4, w)\ninputs = torch.ones(2, 4)", sets={"w": "5"}).model.out_features == 5
    )


def test_a_name_takes_its_own_inputs_first(make: Build) -> None:
    code = "model = nn.Linear(4, 1)\ninputs = torch.ones(2, 4)\n"
    code += "def wide(): return nn.Linear(8, 1)\nwide_inputs = torch.ones(2, 8)"
    assert shapes(make(code, "wide")) == [(2, 8)]
    assert shapes(make(code)) == [(2, 4)]


def test_an_object_may_hold_model_and_inputs(make: Build) -> None:
    code = "class case:\n  model = nn.Linear(4, 1)\n  inputs = torch.ones(3, 4)\n  loss = torch.mean\ninputs = None"
    built = make(code, "case")
    assert (shapes(built), built.loss_inside, run(built).shape) == ([(3, 4)], True, ())


def test_names_of_inputs_come_from_the_signature(make: Build) -> None:
    code = "def model(x, *rest, scale=1): return x + sum(rest)\ninputs = tuple(torch.ones(3) for _ in range(3))"
    assert make(code).input_names == ("x", "rest0", "rest1")


# The loss.


def test_the_loss_of_the_file_is_inside_unless_refused(make: Build) -> None:
    code = "model = nn.Linear(4, 3)\ninputs = torch.ones(2, 4)\ndef loss(output): return output.sum()"
    assert run(make(code)).shape == ()
    plain = make(code, loss=False)
    assert (plain.loss_inside, run(plain).shape) == (False, (2, 3))


def test_a_loss_in_the_output_is_found(make: Build) -> None:
    code = (
        "from dataclasses import dataclass\n@dataclass\nclass Out:\n  loss: object\n  y: object\n"
        "class M(nn.Linear):\n  def forward(self, x):\n    y = super().forward(x)\n    return Out(y.sum(), y)\n"
        "model = M(4, 3)\ninputs = torch.ones(2, 4)"
    )
    assert (make(code).loss_inside, run(make(code)).shape) == (True, ())
    assert make(code, loss=False).loss_inside is False


def test_a_loss_may_read_tensors_of_the_file(make: Build) -> None:
    code = (
        "model = nn.Linear(4, 300)\ninputs = torch.ones(200, 4)\ntargets = torch.randint(300, (200,))\n"
        "def loss(output): return nn.functional.cross_entropy(output, targets)"
    )
    built = make(code)
    assert run(built).shape == ()
    assert [each.shape for each in built.constants if each.dim() == 1][-1] == (200,)


# Modes, types, seeds.


def test_train_and_eval(make: Build) -> None:
    code = "model = nn.Dropout()\nmodel.eval()\ninputs = torch.ones(2, 4)"
    assert [make(code, train=each).train for each in (None, True, False)] == [False, True, False]


@pytest.mark.parametrize("fake", [True, False])
def test_dtype_is_of_parameters_and_floating_inputs(make: Build, fake: bool) -> None:
    code = "model = nn.Embedding(9, 4)\ninputs = {'input': torch.ones(2, dtype=torch.int64)}"
    built = make(code, fake=fake, dtype="bf16")
    assert (built.model.weight.dtype, built.kwargs["input"].dtype) == (torch.bfloat16, torch.int64)
    code = "model = nn.Linear(4, 3)\ninputs = torch.ones(2, 4)"
    assert run(make(code, fake=fake, dtype="float64")).dtype == torch.float64
    assert run(make(code, fake=fake, autocast="bf16")).dtype == torch.bfloat16


def test_the_seed_decides_the_weights_and_the_callers_generator_is_left_alone(make: Build) -> None:
    code = "model = nn.Linear(4, 3)\ninputs = torch.randn(2, 4)"
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, second, other = (make(code, fake=False, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.model.weight, second.model.weight)
    assert torch.equal(first.args[0], second.args[0])
    assert not torch.equal(first.model.weight, other.model.weight)


def test_input_on_the_command_line_replaces_the_files(make: Build) -> None:
    code = "def model(x, scale=1): return x * scale\ninputs = 5"
    built = make(code, inputs=("f32[7]", "scale=2"))
    assert (built.args[0].shape, built.kwargs) == ((7,), {"scale": 2})
    assert make("model = nn.Linear(4, 3)", inputs=("f32[7,4]",)).args[0].shape == (7, 4)


def test_dynamic_shapes_mark_dimensions(make: Build) -> None:
    code = "model = nn.Linear(4, 3)\ninputs = torch.ones(2, 4)\n"
    marked = make(code + "from torch.export import Dim\ndynamic_shapes = {'input': {0: Dim('batch')}}").args[0]
    assert marked._dynamo_dynamic_indices == {0}
    assert make(code, dynamic=True).args[0]._dynamo_weak_dynamic_indices == {0, 1}
    for wrong in ("{'x': {0: None}}", "{'input': {5: None}}", "(None, None)", "3"):
        with pytest.raises(WorkloadError, match="dynamic_shapes"):
            make(code + f"dynamic_shapes = {wrong}")


# Imports.


def test_a_file_imports_its_neighbours_which_become_dependencies(project: Path) -> None:
    (project / "models").mkdir()
    (project / "models" / "blocks_of_mine.py").write_text(HEAD + "def make(): return nn.Linear(4, 3)")
    (project / "models" / "net.py").write_text(
        HEAD + "from blocks_of_mine import make as model\ninputs = torch.ones(2, 4)"
    )
    workload = load_workload("models/net.py", CaptureSettings())
    built = build(workload, CaptureSettings(), fake=True)
    assert (workload.name, workload.spec, workload.root) == ("net", "models/net.py", project.resolve())
    assert {"net.py", "blocks_of_mine.py"} <= {path.name for path in built.files}
    assert not any("site-packages" in path.parts for path in built.files)


def test_a_file_of_a_package_may_import_relatively(project: Path) -> None:
    (project / "pack").mkdir()
    (project / "pack" / "__init__.py").touch()
    (project / "pack" / "layers.py").write_text(HEAD + "def make(): return nn.Linear(4, 3)")
    (project / "pack" / "net.py").write_text(HEAD + "from .layers import make as model\ninputs = torch.ones(2, 4)")
    assert run(build(load_workload("pack/net.py", CaptureSettings()), CaptureSettings(), fake=True)).shape == (2, 3)
    by_module = load_workload("pack.net:model", CaptureSettings())
    assert run(build(by_module, CaptureSettings(), fake=True)).shape == (2, 3)


def test_a_module_that_the_process_uses_already_is_left_alone(project: Path) -> None:
    (project / "used").mkdir()
    (project / "used" / "__init__.py").touch()
    (project / "used" / "net.py").write_text(HEAD + "model = nn.Linear(4, 3)\ninputs = torch.ones(2, 4)")
    sys.path.insert(0, str(project))
    module = importlib.import_module("used.net")
    for spec in ("used/net.py", "used.net:model"):
        built = build(load_workload(spec, CaptureSettings()), CaptureSettings(), fake=True)
        assert torch_is_fake(built.model.weight)
        assert not torch_is_fake(module.model.weight)
        assert not torch_is_fake(module.inputs)


def test_a_second_build_runs_the_code_anew(project: Path) -> None:
    (project / "shared_weights.py").write_text(HEAD + "weight = nn.Parameter(torch.ones(200, 200))")
    (project / "net.py").write_text(
        HEAD + "from shared_weights import weight\ndef model(x): return x @ weight\ninputs = torch.ones(2, 200)"
    )
    workload = load_workload("net.py", CaptureSettings())
    build(workload, CaptureSettings(), fake=True)
    real = run(build(workload, CaptureSettings(), fake=False))
    assert real.tolist() == [[200.0] * 200] * 2


def test_a_name_in_an_installed_package(make: Build) -> None:
    settings = CaptureSettings(overrides=(("d_model", "32"), ("nhead", "4")), inputs=("f32[5,2,32]",))
    built = build(load_workload("torch.nn:TransformerEncoderLayer", settings), settings, fake=True)
    assert run(built).shape == (5, 2, 32)


# The Python API's objects.


@pytest.mark.parametrize("fake", [True, False])
def test_a_model_object_is_not_changed(fake: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    model.table = torch.ones(3)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    built = build(
        object_workload(model, torch.ones(2, 4), loss=torch.sum), CaptureSettings(train=True, dtype="f64"), fake=fake
    )
    assert (run(built).dtype, built.loss_inside) == (torch.float64, True)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert type(model.table) is torch.Tensor
    assert model[0].weight.dtype == torch.float32


model_of_the_notebook = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
weight_of_the_notebook = torch.ones(4, requires_grad=True)


def inner(x: Any) -> Any:
    return model_of_the_notebook(x)


@pytest.mark.parametrize("fake", [True, False])
def test_a_function_reads_copies_of_its_globals_and_closure(fake: bool) -> None:
    from aotcli.capture.eager import measure_eager

    target = torch.ones(2, 4)

    def step(x: Any) -> Any:
        return ((inner(x) * weight_of_the_notebook - target) * model_of_the_notebook[0].bias).sum()

    before = {key: value.clone() for key, value in model_of_the_notebook.state_dict().items()}
    built = build(object_workload(step, torch.ones(2, 4)), CaptureSettings(), fake=fake)
    assert (built.step.model.__name__, torch_is_fake(run(built))) == ("step", fake)
    saved, notes = measure_eager(built)
    assert saved is not None, notes
    # The linear's result, the batch's mean and deviation, the norm's result, and the difference: 8 + 4 + 4 + 8 + 8.
    assert saved.saved_bytes == (8 + 4 + 4 + 8 + 8) * 4
    assert all(torch.equal(value, before[key]) for key, value in model_of_the_notebook.state_dict().items())
    assert not torch_is_fake(weight_of_the_notebook)
    assert not torch_is_fake(target)


def test_such_a_function_is_captured_on_fake_tensors() -> None:
    from aotcli.capture.trace import capture

    def step(x: Any) -> Any:
        return inner(x).sum()

    before = {key: value.clone() for key, value in model_of_the_notebook.state_dict().items()}
    trace = capture(object_workload(step, torch.ones(2, 4)), CaptureSettings(level="aten")).trace
    assert (trace.tensors, len(trace.regions)) == ("fake", 1)
    assert all(torch.equal(value, before[key]) for key, value in model_of_the_notebook.state_dict().items())


@pytest.mark.parametrize("tensors", ["fake", "real"])
def test_what_a_function_reads_and_trains_counts_as_its_parameters(tensors: str, tmp_path: Path) -> None:
    from aotcli.capture.trace import capture
    from aotcli.ir.joint import NodeKind

    file = tmp_path / "step.py"
    file.write_text(
        "import torch\nfrom torch import nn\n"
        "weight = torch.randn(8, 8, requires_grad=True)\ntable = torch.randn(8)\n"
        "net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))\nunused = nn.Linear(100, 100)\n"
        "def model(x, bias):\n    return net((x @ weight).relu() * table + bias).sum()\n"
        "def inputs():\n    return torch.randn(4, 8), torch.zeros(8, requires_grad=True)\n"
    )
    settings = CaptureSettings(level="aten", tensors=tensors)
    trace = capture(load_workload(str(file), settings), settings).trace
    assert trace.model.parameters == 8 * 8 + (8 * 8 + 8) + 2 * 8
    assert trace.model.parameter_bytes == 4 * trace.model.parameters
    assert trace.model.buffer_bytes == 4 * 2 * 8 + 8
    assert trace.model.inputs == ("x f32[4,8]", "bias f32[8]")
    (graph,) = trace.regions
    named = {node.origin for node in graph.nodes if node.kind is NodeKind.PARAM}
    assert named == {"weight", "net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"}


# Errors.


@pytest.mark.parametrize(
    ("code", "what", "hint"),
    [
        ("inputs = 1", "m.py has no `model`", "def loss(output)"),
        ("class Net(nn.Module): ...", "m.py has no `model`", "m.py:Net"),
        ("model = nn.Linear(2, 2)", "m.py has no `inputs`", "inputs = (torch.randn"),
        ("model = 3\ninputs = 1", "m.py:model is a int", "a module, a function"),
        ("def model(): return 3\ninputs = 1", "m.py:model made a int", "return a module"),
        ("class model(nn.Linear): ...\ninputs = 1", "m.py:model needs in_features, out_features", "--set in_features"),
        ("model = nn.ReLU()\ninputs = 3", "`inputs` is a int", "give a tuple"),
        ("model = nn.ReLU()\ndef inputs(n): ...", "`inputs` needs n", "--set n=VALUE"),
        ("model = nn.ReLU()\ninputs = torch.ones(2)\nloss = 3", "`loss` is a int", "a function loss(output)"),
        ("import no_such_package", "m.py raised while it was imported", "ModuleNotFoundError"),
        ("model = (", "m.py raised while it was imported", "m.py:3"),
        ("raise SystemExit(4)", "m.py ended the program", "__main__"),
        (
            "def model():\n  raise ValueError('no')\ninputs = 1",
            "m.py:model raised while building",
            "m.py:4: raise Value",
        ),
        ("model = nn.ReLU()\ndef inputs(): return 1 / 0", "`inputs` raised", "ZeroDivisionError"),
    ],
)
def test_faults_of_a_file(make: Build, code: str, what: str, hint: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        make(code, fake=False)
    assert what in caught.value.what
    assert hint in caught.value.why + caught.value.fix


def test_the_template_of_the_error_works(make: Build) -> None:
    from aotcli.capture.define import TEMPLATE

    lines = [line.removeprefix("    ") for line in TEMPLATE.splitlines()]
    assert len(lines) == 6
    assert run(make("\n".join(lines))).shape == ()


def test_inputs_that_do_not_fit_the_signature(make: Build) -> None:
    code = "class M(nn.Module):\n  def forward(self, x, mask): return x\nmodel = M()\ninputs = torch.ones(2, 3)"
    with pytest.raises(
        WorkloadError, match=r"do not fit M.forward\(x, mask\): missing a required argument: 'mask'"
    ) as e:
        make(code)
    assert e.value.why == "given: f32[2,3]"


def test_files_and_names_that_are_not_there(project: Path) -> None:
    (project / "train.py").write_text(HEAD + "class Network(nn.Module): ...")

    def error(spec: str) -> WorkloadError:
        with pytest.raises(WorkloadError) as caught:
            build(load_workload(spec, CaptureSettings()), CaptureSettings(), fake=True)
        return caught.value

    assert "did you mean train.py?" in error("trian.py").fix
    assert "did you mean train.py?" in error("train").fix
    assert "there is no folder nowhere" in error("nowhere/a.py").why
    assert "it has Network" in error("train.py:network").fix
    assert "no module 'absent_package.sub'" in error("absent_package.sub:model").what
    assert "has no 'nothing'" in error("torch.nn:nothing").what
    (project / "folder.py").mkdir()
    assert "folder.py is a folder" in error("folder.py").what


def test_what_only_fake_tensors_cannot_do_is_told_apart(make: Build) -> None:
    reads_data = "w = torch.ones(300, 300)\nn = int(w.sum())\nmodel = nn.Linear(4, 3)\ninputs = torch.ones(2, 4)"
    with pytest.raises(FakeBuildFailed, match="on fake tensors"):
        make(reads_data)
    assert run(make(reads_data, fake=False)).shape == (2, 3)
    with pytest.raises(WorkloadError) as caught:
        make("undefined_name")
    assert not isinstance(caught.value, FakeBuildFailed)


def test_what_does_not_fit_is_not_built_for_real(project: Path) -> None:
    code = "def model(): return nn.Linear(2 ** 26, 2 ** 20)\ninputs = torch.ones(1, 2 ** 26)"
    (project / "m.py").write_text(HEAD + code)
    workload = load_workload("m.py", CaptureSettings())
    assert build(workload, CaptureSettings(), fake=True).model.weight.numel() == 2**46
    with pytest.raises(WorkloadError, match="too large for real tensors") as caught:
        build(workload, CaptureSettings(), fake=False)
    assert "262144.0 GiB" in caught.value.why


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there(make: Build) -> None:
    code = "model = nn.ReLU()\ninputs = torch.ones(2)"
    with pytest.raises(EnvironmentProblem, match="no CUDA device"):
        make(code, device="cuda")
    with pytest.raises(WorkloadError, match="--device gpu"):
        make(code, device="gpu")


# transformers and timm.

TINY = {
    "hidden_size": "32",
    "num_hidden_layers": "2",
    "num_attention_heads": "2",
    "intermediate_size": "64",
    "seq": "8",
}


def named(spec: str, sets: dict[str, str] | None = None, **settings: Any) -> BuiltWorkload:
    given = CaptureSettings(overrides=tuple((sets or {}).items()), **settings)
    return build(load_workload(spec, given), given, fake=True)


@pytest.mark.parametrize(
    ("kind", "sets", "class_name", "inputs"),
    [
        ("llama", {**TINY, "num_key_value_heads": "2"}, "LlamaForCausalLM", ["input_ids", "labels"]),
        ("bert", TINY, "BertForMaskedLM", ["input_ids", "labels"]),
        ("bert", {**TINY, "is_decoder": "true"}, "BertLMHeadModel", ["input_ids", "labels"]),
        ("t5", {"d_model": "32", "num_layers": "1", "seq": "8"}, "T5ForConditionalGeneration", ["input_ids", "labels"]),
        ("vit", {**TINY, "image_size": "32"} | {"batch": "3"}, "ViTForImageClassification", ["pixel_values", "labels"]),
    ],
)
def test_hf_types_get_the_class_they_are_trained_as(
    kind: str, sets: dict[str, str], class_name: str, inputs: list[str]
) -> None:
    pytest.importorskip("transformers")
    if kind == "vit":
        sets = {key: value for key, value in sets.items() if key != "seq"}
    built = named(f"hf:{kind}", sets)
    assert (type(built.model).__name__, list(built.kwargs), built.loss_inside) == (class_name, inputs, True)
    assert built.train
    assert run(built).shape == ()
    assert all(torch_is_fake(each) for each in built.model.parameters())


def torch_is_fake(tensor: Any) -> bool:
    from aotcli.capture.torch_private_build import is_fake

    return is_fake(tensor)


def test_an_hf_configuration_file(project: Path) -> None:
    pytest.importorskip("transformers")
    fields = {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "vocab_size": 64}
    config = {**fields, **{key: int(value) for key, value in TINY.items() if key != "seq"}, "num_key_value_heads": 2}
    (project / "config.json").write_text(json.dumps(config))
    built = named("hf:config.json", {"num_hidden_layers": "3", "seq": "8", "batch": "1"})
    assert type(built.model).__name__ == "LlamaForSequenceClassification"
    assert len(built.model.model.layers) == 3
    assert project / "config.json" in built.files
    assert named("hf:config.json", {"seq": "8"}, loss=False).kwargs.keys() == {"input_ids"}
    given = named("hf:config.json", inputs=("i64[3,5]<64",))
    assert (given.kwargs["input_ids"].shape, given.kwargs["labels"].shape) == ((3, 5), (3,))


def test_faults_of_hf_names(project: Path) -> None:
    pytest.importorskip("transformers")
    (project / "bad.json").write_text("{")
    (project / "other.json").write_text("{}")
    for spec, sets, text in (
        ("hf:lama", {}, "hf:llama"),
        ("hf:meta-llama/Llama-3", {}, "nothing is downloaded"),
        ("hf:llama", {"num_hiden_layers": "2"}, "num_hidden_layers"),
        ("hf:absent.json", {}, "No such file"),
        ("hf:bad.json", {}, "not JSON"),
        ("hf:other.json", {}, "model_type"),
    ):
        with pytest.raises(WorkloadError) as caught:
            named(spec, sets)
        assert text in str(caught.value)


@pytest.mark.parametrize("extra", ["hf:llama", "timm:resnet18"])
def test_a_missing_extra_says_how_to_get_it(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = {"hf": "transformers", "timm": "timm"}[extra.partition(":")[0]]
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentProblem) as caught:
        named(extra)
    assert f"pip install 'aotcli[{extra.partition(':')[0]}]'" in caught.value.fix


def test_timm_models() -> None:
    from aotcli.capture.loaders.timm import _import_timm

    try:
        _import_timm()
    except EnvironmentProblem as problem:
        if torch.__version__.startswith("2.13."):  # the torch of development, for which make installs both
            raise
        pytest.skip(problem.what)
    built = named("timm:resnet18", {"batch": "3", "size": "64", "num_classes": "7"})
    assert (shapes(built), built.loss_inside, run(built).shape) == ([(3, 3, 64, 64)], True, ())
    assert named("timm:vit_tiny_patch16_224", {"size": "32"}).args[0].shape[-1] == 32
    for spec, sets, text in (
        ("timm:resnt18", {}, "timm:resnet18"),
        ("timm:resnet18", {"drop_rat": "0.1"}, "drop_rate"),
        ("timm:hf-hub:timm/resnet18", {}, "nothing is downloaded"),
    ):
        with pytest.raises(WorkloadError) as caught:
            named(spec, sets)
        assert text in str(caught.value)
