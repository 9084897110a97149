"""Each ban rule on the smallest graph that it applies to, and where it does not."""

from __future__ import annotations

import pytest
from builders import GraphBuilder

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.ir.joint import JointGraph, Mapping, Ref, Tag

ALLOWED = {Tag.RECOMPUTABLE}
FUSIBLE = {Tag.RECOMPUTABLE, Tag.FUSIBLE}
SHAPE = (8, 8)


def bans(graph: JointGraph, **options: object) -> dict[str, str]:
    return dict(decide(graph, Heuristic(**options), cse=False).bans)  # type: ignore[arg-type]


class Step:
    """x → value → y with a backward that reads `value`; made op by op."""

    def __init__(self) -> None:
        self.g = GraphBuilder()
        self.x = self.g.input("x", SHAPE)
        self.t = self.g.tangent(shape=SHAPE)

    def built(self, value: Ref, *, reader: str = "aten.mul.Tensor") -> JointGraph:
        y = self.g.pointwise("aten.neg.default", value, shape=SHAPE)
        tags = FUSIBLE if reader == "aten.mul.Tensor" else set()
        gx = self.g.op(reader, self.t, value, shape=SHAPE, tags=tags)
        return self.g.build([y], [gx])


@pytest.fixture
def step() -> Step:
    return Step()


def test_allowlist(step: Step) -> None:
    value = step.g.op("aten.cumsum.default", step.x, 1, shape=SHAPE)
    assert bans(step.built(value))[value.name] == "allowlist"


@pytest.mark.parametrize(
    ("tags", "rule"),
    [
        ({Tag.COMPUTE_INTENSIVE}, "compute intensive"),
        ({Tag.RANDOM}, "random"),
        ({Tag.RANDOM_OP}, "random"),
        ({Tag.RANDOM, Tag.COMPUTE_INTENSIVE}, "compute intensive"),
        ({Tag.RANDOM, Tag.RECOMPUTABLE}, "random"),  # listed by hand
    ],
)
def test_why_an_op_is_not_on_the_list(step: Step, tags: set[Tag], rule: str | None) -> None:
    value = step.g.op("custom.op.default", step.x, shape=SHAPE, tags=tags)
    assert bans(step.built(value)).get(value.name) == rule


@pytest.mark.parametrize(
    ("tags", "options", "rule"),
    [
        ({Tag.COMPUTE_INTENSIVE}, {}, "compute intensive"),
        ({Tag.RANDOM_OP}, {}, "random"),
        ({Tag.RANDOM}, {}, "random"),
        ({Tag.NON_BUILTIN}, {}, None),
        ({Tag.NON_BUILTIN}, {"ban_non_builtin": True}, "non-builtin"),
        (set(), {}, None),
    ],
)
def test_aggressive_bans_by_what_an_op_is(
    step: Step, tags: set[Tag], options: dict[str, bool], rule: str | None
) -> None:
    value = step.g.op("custom.op.default", step.x, shape=SHAPE, tags=tags)
    assert bans(step.built(value), aggressive=True, **options).get(value.name) == rule


def test_materialized_in_backward(step: Step) -> None:
    value = step.g.pointwise("aten.relu.default", step.x)
    graph = step.built(value, reader="aten.mm.default")
    assert bans(graph)[value.name] == "materialized in backward"
    assert value.name not in bans(graph, aggressive=True)


def test_materialized_is_seen_through_views_and_never_said_of_views(step: Step) -> None:
    value = step.g.pointwise("aten.relu.default", step.x)
    view = step.g.view(step.g.view(value, SHAPE), SHAPE)
    graph = step.built(view, reader="aten.mm.default")
    found = bans(graph)
    assert found[value.name] == "materialized in backward"
    assert view.name not in found


def test_a_small_view_is_no_reduction(step: Step) -> None:
    view = step.g.view(step.x, (8, 1))
    assert view.name not in bans(step.built(view))


def test_a_concatenation_takes_any_input_into_its_memory(step: Step) -> None:
    value = step.g.pointwise("aten.relu.default", step.x)
    graph = step.built(value, reader="aten.cat.default")
    assert value.name not in bans(graph)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_functionalized_kernel_takes_what_it_clones(step: Step, wrapped: bool) -> None:
    value = step.g.pointwise("aten.relu.default", step.x)
    other = step.g.pointwise("aten.exp.default", step.x)
    arguments = {"out": value, "grad": step.t, "in": other}
    target = "higher_order.triton_kernel_wrapper_functional" if wrapped else "higher_order.auto_functionalized"
    kwargs = {"kwargs": Mapping(tuple(arguments.items()))} if wrapped else arguments
    kernel = step.g.op(target, shapes=[SHAPE], kwargs=kwargs, mutable_args=("out",), backward=True)
    y = step.g.pointwise("aten.mul.Tensor", value, other)
    graph = step.g.build([y], [step.g.getitem(kernel, 0)])
    assert graph.index[kernel.name] > 0
    found = bans(graph)
    assert value.name not in found
    assert found[other.name] == "materialized in backward"


def test_nothing_fuses_into_a_tritons_kernels_result(step: Step) -> None:
    kernel = step.g.op(
        "higher_order.triton_kernel_wrapper_functional",
        shapes=[SHAPE],
        kwargs={"kwargs": Mapping((("out", step.x),))},
        tags=FUSIBLE,
    )
    part = step.g.getitem(kernel, 0)
    graph = step.built(part)
    # Were it fusible with all its readers, it would weigh twice its bytes.
    assert decide(graph, Heuristic()).weights[part.name] == int(8 * 8 * 4 * 1.1)


def test_distance(step: Step) -> None:
    value = step.g.pointwise("aten.relu.default", step.x)
    first = value
    for _ in range(3):
        value = step.g.pointwise("aten.sin.default", value)
    graph = step.built(value)
    assert first.name not in bans(graph)
    assert bans(graph, max_distance=3)[first.name] == "distance"
    assert first.name not in bans(graph, max_distance=4)


def test_distance_never_applies_from_a_thousand_on() -> None:
    step = Step()
    value = first = step.g.pointwise("aten.relu.default", step.x)
    for _ in range(1005):
        value = step.g.pointwise("aten.sin.default", value)
    found = bans(step.built(value), max_distance=10)
    assert first.name not in found or found[first.name] != "distance"
    assert list(found.values()).count("distance") == 999 - 10


def test_reduction_counts_tensor_arguments_each_time_they_occur(step: Step) -> None:
    def small(*args: object) -> Ref:
        return step.g.op("aten.sum.default", *args, shape=(8, 2), tags=FUSIBLE)

    once, twice, listed = small(step.x), small(step.x, step.x), small([step.x, step.x])
    total = step.g.pointwise("aten.add.Tensor", step.g.pointwise("aten.add.Tensor", once, twice), listed)
    found = bans(step.built(total))
    assert once.name not in found  # a quarter exactly is not less than a quarter
    assert found[twice.name] == "reduction"
    assert listed.name not in found
    assert bans(step.built(total), aggressive=True)[twice.name] == "reduction"


def test_what_a_user_wants_recomputed_is_never_banned(step: Step) -> None:
    value = step.g.op("aten.mm.default", step.x, step.x, shape=SHAPE, checkpoint="PREFER_RECOMPUTE")
    assert value.name not in bans(step.built(value))


@pytest.mark.parametrize("target", ["aten.lift_fresh_copy.default", "aten.lift_fresh.default", "operator.getitem"])
def test_free_ops_are_never_banned(step: Step, target: str) -> None:
    value = step.g.op(target, step.x, 0, shape=SHAPE, checkpoint=None)
    assert value.name not in bans(step.built(value, reader="aten.mm.default"))


def test_only_what_the_forward_needs_is_banned(step: Step) -> None:
    value = step.g.op("aten.mm.default", step.x, step.x, shape=SHAPE)
    y = step.g.pointwise("aten.neg.default", step.x)
    gx = step.g.op("aten.mul.Tensor", step.t, value, shape=SHAPE)
    decision = decide(step.g.build([y], [gx]), Heuristic())
    assert value.name not in decision.bans
    assert decision.weights[value.name] == int(8 * 8 * 4 * 1.1)


def test_seeds_and_inputs() -> None:
    step = Step()
    seed = step.g.seed()
    backward_seed = step.g.seed(backward=True)
    value = step.g.pointwise("aten.mul.Tensor", step.x, seed)
    gx = step.g.op("aten.mul.Tensor", step.t, backward_seed, shape=SHAPE)
    found = bans(step.g.build([value], [gx]))
    assert found[seed.name] == "seed"
    assert found["x"] == "primal"
    assert backward_seed.name not in found


# Where a node stands among fusible ops.


def far_apart_graph(*, break_with: str = "aten.mm.default") -> tuple[JointGraph, Ref, Ref]:
    """`shared` is read at once and again after `break_with`."""
    step = Step()
    g = step.g
    shared = g.pointwise("aten.sin.default", step.x)
    near = g.pointwise("aten.relu.default", shared)
    tags = FUSIBLE if break_with == "aten.exp.default" else set()
    middle = g.op(break_with, near, near, shape=SHAPE, tags=tags)
    far = g.pointwise("aten.add.Tensor", middle, shared)
    return step.built(far), near, far


def test_used_far_apart() -> None:
    graph, near, far = far_apart_graph()
    found = bans(graph)
    assert found[far.name] == "used far apart"
    assert near.name not in found
    assert far.name not in bans(graph, aggressive=True)


def test_used_far_apart_needs_something_unfusible_between() -> None:
    graph, _, far = far_apart_graph(break_with="aten.exp.default")
    assert far.name not in bans(graph)


def chains(length: int, *, count: int = 1) -> tuple[JointGraph, list[Ref]]:
    """Chains of `length` that begin at one op and end in one; the ops of the first."""
    step = Step()
    head = step.g.pointwise("aten.exp.default", step.x)
    rows = [[head] for _ in range(count)]
    for _ in range(length):
        for row, op in zip(rows, ("sin", "cos"), strict=False):
            row.append(step.g.pointwise(f"aten.{op}.default", row[-1]))
    if count == 1:
        return step.built(rows[0][-1]), rows[0]
    joined = step.g.pointwise("aten.add.Tensor", rows[0][-1], rows[1][-1])
    return step.built(step.g.pointwise("aten.tanh.default", joined)), rows[0]


def test_long_fusible_chain() -> None:
    graph, chain = chains(250)
    found = bans(graph)
    cut = [ref.name for ref in chain if found.get(ref.name) == "long fusible chain"]
    # The walk starts at exp and stops more than a hundred places later; there it starts again.
    assert cut == [chain[101].name, chain[203].name]
    assert "long fusible chain" not in bans(graph, aggressive=True).values()
    assert chain[101].name not in decide(graph, Heuristic(), ignored=[(chain[101].name, "long fusible chain")]).bans


def test_a_chain_of_a_hundred_is_not_long() -> None:
    assert "long fusible chain" not in bans(chains(98)[0]).values()


def test_a_chain_is_cut_only_where_it_is_one_op_wide() -> None:
    graph, _ = chains(150, count=2)
    # Both chains reach the sum, so that it still waits a second time when it is looked at; only then is one left.
    assert [name for name, rule in bans(graph).items() if rule == "long fusible chain"] == ["tanh"]


# Op sets.


def test_the_published_set_is_narrower(step: Step) -> None:
    ops = {
        "aten.index.Tensor": FUSIBLE,
        "aten.full_like.default": FUSIBLE,
        "aten.select.int": {*FUSIBLE, Tag.VIEW},
        "aten.gelu.default": FUSIBLE,
        "aten.frobnicate.default": {*FUSIBLE, Tag.POINTWISE},
        "aten.squeeze.dim": {*FUSIBLE, Tag.VIEW},
    }
    values = [step.g.op(target, step.x, shape=SHAPE, tags=tags) for target, tags in ops.items()]
    total = values[0]
    for value in values[1:]:
        total = step.g.pointwise("aten.add.Tensor", total, value)
    graph = step.built(total)
    assert not {value.name for value in values} & bans(graph).keys()
    found = bans(graph, op_set="nvfuser")
    assert {value.name for value in values if found.get(value.name) == "allowlist"} == {
        "index", "full_like", "select",
    }  # fmt: skip


def test_a_list_of_ops_replaces_the_set(step: Step) -> None:
    a = step.g.pointwise("aten.sin.default", step.x)
    b = step.g.pointwise("aten.cos.default", a)
    c = step.g.op("aten.cumsum.default", b, 1, shape=SHAPE)
    graph = step.built(c)
    assert {name for name, rule in bans(graph).items() if rule == "allowlist"} == {c.name}
    found = bans(graph, recomputable_ops="cumsum, aten.sin.default")
    assert {name for name, rule in found.items() if rule == "allowlist"} == {b.name, "neg"}
