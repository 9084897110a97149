"""Tensors that copies of a step share: each copy finds its own values in them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from aotcli.validation.shared import SharedTensors  # noqa: E402


def test_each_copy_has_its_own_values_and_gradients() -> None:
    weight, table = torch.ones(3, requires_grad=True), torch.arange(3)
    shared = SharedTensors.of((weight, table, weight))
    assert len(shared.tensors) == 2
    one, two = shared.values(), shared.values()
    shared.put(one)
    (weight * 2).sum().backward()
    weight.data.mul_(5)
    table.add_(1)
    shared.put(two)
    assert (weight.tolist(), weight.grad, table.tolist()) == ([1.0, 1.0, 1.0], None, [0, 1, 2])
    shared.put(one)
    assert weight.grad is not None
    assert (weight.tolist(), weight.grad.tolist(), table.tolist()) == ([5.0] * 3, [2.0] * 3, [1, 2, 3])
    shared.restore()
    assert (weight.tolist(), weight.grad, table.tolist()) == ([1.0] * 3, None, [0, 1, 2])


def test_views_of_one_storage_stay_so() -> None:
    base = torch.zeros(4)
    part = base[:2].detach()
    shared = SharedTensors.of((base, part))
    values = shared.values()
    shared.put(values)
    base[0] = 7.0
    assert part.tolist() == [7.0, 0.0]
    shared.restore()
    assert base.tolist() == [0.0] * 4


def test_in_double_precision_and_back() -> None:
    weight = torch.ones(2, requires_grad=True)
    (weight * weight).sum().backward()  # autograd has met it in its own precision
    shared = SharedTensors.of((weight,))
    exact, narrow = shared.values(), shared.values()
    shared.to_float64(exact)
    shared.put(exact)
    (weight * 3).sum().backward()
    assert weight.dtype is torch.float64
    assert weight.grad is not None
    assert weight.grad.dtype is torch.float64
    shared.put(narrow)
    assert weight.dtype is torch.float32
    (weight * 3).sum().backward()
    assert weight.grad.tolist() == [3.0, 3.0]
