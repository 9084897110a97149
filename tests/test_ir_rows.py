from __future__ import annotations

import pytest
from builders import count_calls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.ir.names import count_holes, default_stem, join_name, join_path, split_name, split_path
from aotcli.ir.rows import Row, Run, fold, unfold_run


def unfolded(items: list[Row | Run]) -> list[Row]:
    return [row for item in items for row in (unfold_run(item) if isinstance(item, Run) else [item])]


rows = st.lists(st.tuples(st.sampled_from("abc"), st.tuples(st.integers(-2, 2))), max_size=30)


@given(rows, rows, st.integers(1, 5))
@settings(max_examples=300)
def test_unfolding_undoes_folding(head, block, repeat):
    whole: list[Row] = head + block * repeat + head
    assert unfolded(fold(whole)) == whole


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(), max_size=3).map(tuple)), max_size=20))
def test_rows_of_one_label_may_differ_in_length(some):
    assert unfolded(fold(some)) == some


def layer(j: int) -> list[Row]:
    return [("mm", (3 * j, -7)), ("add", (-1, -4)), ("relu", ()), ("add", (-1, 100 - 5 * j))]


def test_layers_whose_integers_grow_by_a_step_are_one_run():
    whole = [("start", ()), *(row for j in range(12) for row in layer(j)), ("end", (1,))]
    folded = fold(whole)
    assert folded == [
        ("start", ()),
        Run(12, tuple(layer(0)), ((3, 0), (0, 0), (), (0, -5))),
        ("end", (1,)),
    ]


def test_a_step_that_changes_ends_the_run():
    whole = [("a", (i if i < 6 else 2 * i,)) for i in range(12)]
    assert fold(whole)[0] == Run(6, (("a", (0,)),), ((1,),))


def test_a_short_run_does_not_swallow_the_start_of_a_long_one():
    # Three a's in a row invite a run of period 1, which would break the six layers that begin with the third.
    block: list[Row] = [("a", ()), ("b", ()), ("c", ()), ("d", ())]
    folded = fold([("a", ()), ("a", ()), *(block * 6)])
    assert Run(6, tuple(block), ((), (), (), ())) in folded


def test_two_repetitions_are_not_worth_a_run():
    whole = [("a", (1,)), ("b", (2,))] * 2
    assert fold(whole) == whole


def test_work_grows_with_the_rows_and_no_faster():
    small, large = ([row for j in range(layers) for row in layer(j)] for layers in (100, 800))
    assert count_calls(lambda: fold(large)) < 10 * count_calls(lambda: fold(small))
    irregular = [("abc"[(i * i // 7) % 3], (i * i % 11,)) for i in range(4000)]
    assert count_calls(lambda: fold(irregular)) < 14 * count_calls(lambda: fold(irregular[:400]))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("add", ("add", 0)),
        ("add_1", ("add", 1)),
        ("add_0", ("add_0", 0)),
        ("add_01", ("add_01", 0)),
        ("_1", ("_1", 0)),
        ("a_1_2", ("a_1", 2)),
        ("x_9999999999", ("x_9999999999", 0)),
        ("x_١", ("x_١", 0)),
    ],
)
def test_names_split_into_stem_and_number(name, parts):
    assert split_name(name) == parts
    assert join_name(*parts) == name


@pytest.mark.parametrize(
    ("path", "pattern", "numbers"),
    [
        ("", "", ()),
        ("h.3.ln1", "h.#.ln1", (3,)),
        ("0", "#", (0,)),
        ("0.1.2", "#.#.#", (0, 1, 2)),
        ("layer4.1.conv2", "layer4.#.conv2", (1,)),
        ("h.03", "h.03", ()),
        ("a#b.1", "=a#b.1", ()),
        ("=x", "==x", ()),
        ("h.٣", "h.٣", ()),
    ],
)
def test_paths_split_into_pattern_and_numbers(path, pattern, numbers):
    assert split_path(path) == (pattern, numbers)
    assert count_holes(pattern) == len(numbers)
    assert join_path(pattern, numbers) == path


@given(st.text(alphabet="a_01.#=٣", max_size=12))
def test_names_and_paths_come_back(text):
    assert join_name(*split_name(text)) == text
    assert join_path(*split_path(text)) == text


def test_default_stems_are_those_of_fx():
    assert default_stem("aten.mm.default") == "mm"
    assert default_stem("operator.getitem") == "getitem"
    assert default_stem("odd") == "odd"
