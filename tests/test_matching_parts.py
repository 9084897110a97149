"""The parts of the matcher that stand by themselves: common subsequences, and which module is which."""

from __future__ import annotations

import pytest
from builders import GraphBuilder
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_transformer import Variant, transformer

from aotcli.analysis.matching.align import common_between, common_subsequence
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.modules import pair_modules
from aotcli.analysis.matching.side import read_side
from aotcli.ir.joint import JointGraph

TOKENS = st.lists(st.integers(0, 4), max_size=14)


def longest(a: list[int], b: list[int]) -> int:
    """The length of a longest common subsequence, by the table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, mine in enumerate(a):
        for j, other in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if mine == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def check(a: list[int], b: list[int], pairs: list[tuple[int, int]]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert pairs == sorted(pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)


@settings(max_examples=400)
@given(TOKENS, TOKENS)
@example([0], [0])
@example([1, 0], [0, 1])
def test_a_common_subsequence_is_a_longest_one(a: list[int], b: list[int]):
    pairs = common_subsequence(a, b)
    check(a, b, pairs)
    assert len(pairs) == longest(a, b)


@settings(max_examples=200)
@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_also_where_nothing_occurs_twice(order: list[int], gone: set[int]):
    a, b = list(range(12)), [each for each in order if each not in gone]
    pairs = common_subsequence(a, b)
    check(a, b, pairs)
    assert len(pairs) == longest(a, b)


def test_what_lies_between_anchors_stays_between_them():
    left, right = [1, 2, 9, 1, 2], [2, 9, 1, 1, 2]
    assert common_between([(2, 1)], left, right) == [(1, 0), (2, 1), (3, 2), (4, 4)]


def test_long_sequences_with_little_in_common_are_cut_short_but_right():
    a = [(place * 7919) % 5 for place in range(6000)]
    b = [(place * 104729) % 7 % 5 for place in range(6000)]
    pairs = common_subsequence(a, b)
    check(a, b, pairs)
    assert len(pairs) > 1000


def stack(*modules: tuple[str, str, int]) -> JointGraph:
    """A forward through modules of a path, a class and a width, each with a parameter of its own."""
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    for path, kind, width in modules:
        weight = g.param(f"{path}.weight", (width, width), origin=f"{path}.weight", module=path, module_type=kind)
        x = g.op(f"aten.{kind.lower()}.default", x, weight, shape=(4, width), module=path, module_type=kind)
    return g.build([x], fingerprinted=False)


def pairs_of(left: JointGraph, right: JointGraph) -> dict[str, str]:
    """By left path, the right one."""
    numbers = Numbers()
    found = pair_modules(read_side(left, numbers), read_side(right, numbers))
    return {path: other for other, path in found.items() if path and other}


CONVOLUTIONS = [("Conv", 8), ("Norm", 8), ("Act", 8), ("Conv", 16), ("Norm", 16), ("Act", 16), ("Linear", 32)]


def test_modules_shift_where_one_is_put_between():
    plain = [(str(i), kind, width) for i, (kind, width) in enumerate(CONVOLUTIONS)]
    more = [*CONVOLUTIONS[:3], ("Dropout", 8), *CONVOLUTIONS[3:]]
    shifted = [(str(i), kind, width) for i, (kind, width) in enumerate(more)]
    expected = {str(i): str(i if i < 3 else i + 1) for i in range(7)}
    assert pairs_of(stack(*plain), stack(*shifted)) == expected


def test_linear_layers_of_different_widths_shift():
    widths = [8, 16, 24, 32, 40]
    left = stack(*((str(i), "Linear", width) for i, width in enumerate(widths)))
    right = stack(*((str(i), "Linear", width) for i, width in enumerate(widths[1:])))
    assert pairs_of(left, right) == {"1": "0", "2": "1", "3": "2", "4": "3"}


def test_equal_layers_go_by_their_numbers():
    left = stack(*((str(i), "Linear", 8) for i in range(6)))
    right = stack(*((str(i), "Linear", 8) for i in range(5)))
    assert pairs_of(left, right) == {str(i): str(i) for i in range(5)}


def test_layers_of_two_kinds_in_turns_shift():
    kinds = ["Global", "Local"] * 4
    left = stack(*((f"h.{i}.mix", kind, 8) for i, kind in enumerate(kinds)))
    right = stack(*((f"h.{i}.mix", kind, 8) for i, kind in enumerate(kinds[1:])))
    assert pairs_of(left, right) == {f"h.{i + 1}.mix": f"h.{i}.mix" for i in range(7)}


def test_a_class_may_have_changed():
    left = stack(("a", "Linear", 8), ("act", "Gelu", 8), ("b", "Linear", 8))
    right = stack(("a", "Linear", 8), ("act", "Silu", 8), ("b", "Linear", 8))
    assert pairs_of(left, right) == {"a": "a", "act": "act", "b": "b"}


@pytest.mark.parametrize("gone", [0, 3, 11])
def test_a_wrapped_model_with_a_layer_less_loses_one_whole_layer(gone: int):
    layers = tuple(each for each in range(12) if each != gone)
    found = pairs_of(transformer(), transformer(Variant(layers=layers, renumbered=True, prefix="module.")))
    numbers = [(path.split(".")[1], other.split(".")[2]) for path, other in found.items() if path.startswith("h.")]
    assert len(set(numbers)) == len({left for left, _ in numbers}) == len({right for _, right in numbers}) == 11
    assert all(other == f"module.{path}" for path, other in found.items() if not path.startswith("h."))
