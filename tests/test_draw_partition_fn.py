"""Pictures drawn on the way to compilation, wherever PyTorch takes a partition function."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aotcli
from aotcli.errors import InputError, StrategyError

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiler(gm: Any, _inputs: Any) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(gm.forward)


def run_aot_function(partition_fn: Any) -> None:
    """A function through `aot_function`, with eager's gradients."""
    from functorch.compile import aot_function

    x = torch.randn(4, 8, requires_grad=True)
    weight = torch.randn(8, 3, requires_grad=True)

    def function(x: Any, weight: Any) -> Any:
        return (x.sin() @ weight).tanh()

    compiled = aot_function(function, fw_compiler=compiler, bw_compiler=compiler, partition_fn=partition_fn)
    ours = torch.autograd.grad(compiled(x, weight).sum(), [x, weight])
    theirs = torch.autograd.grad(function(x, weight).sum(), [x, weight])
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def texts(path: Path) -> list[str]:
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_strategy_is_drawn_on_the_way(tmp_path: Path) -> None:
    run_aot_function(aotcli.drawing(tmp_path / "joint.svg", "mincut"))
    shown = texts(tmp_path / "joint.svg")
    assert {"sin", "mm", "tanh"} <= set(shown)
    assert any(text.startswith("saves ") for text in shown)


def test_torchs_own_function_is_drawn_as_it_decides(tmp_path: Path) -> None:
    """As torch's draw_joint_graph, which draws and hands on to default_partition."""
    from functorch.compile import default_partition

    run_aot_function(aotcli.drawing(tmp_path / "joint.svg", default_partition))
    shown = texts(tmp_path / "joint.svg")
    assert "joint · default_partition" in shown
    assert "mm" in shown


def test_min_cut_of_torch_removes_nodes_and_is_drawn(tmp_path: Path) -> None:
    from functorch.compile import min_cut_rematerialization_partition

    run_aot_function(aotcli.drawing(tmp_path / "joint.svg", min_cut_rematerialization_partition))
    assert "sin" in texts(tmp_path / "joint.svg")


def test_each_region_gets_a_file_of_its_own(tmp_path: Path) -> None:
    from torch._dynamo.backends.common import aot_autograd

    def function(x: Any) -> Any:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    backend = aot_autograd(
        fw_compiler=compiler, bw_compiler=compiler, partition_fn=aotcli.drawing(tmp_path / "step.dot", "save-all")
    )
    torch.compile(function, backend=backend)(torch.randn(3, requires_grad=True)).sum().backward()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-2.dot", "step.dot"]
    assert (tmp_path / "step-2.dot").read_text(encoding="utf-8").startswith("// written by aotcli")


def test_a_picture_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cannot be written"):
        run_aot_function(aotcli.drawing(tmp_path / "missing" / "joint.svg"))


def test_what_cannot_be_drawn_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which format"):
        aotcli.drawing(tmp_path / "joint.bmp")
    with pytest.raises(StrategyError):
        aotcli.drawing(tmp_path / "joint.svg", "no-such")
