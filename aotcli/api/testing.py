"""A training step held to its baseline and to limits within a test: what the pytest plugin does, less pytest.

    test = "tests/test_net.py::test_memory"
    step = TestedStep(baseline_name(test), test, (parse_demand(Quantity.SAVED, "24 MiB"),))
    found = check_step(model, (x, y), step, store, Keep())          # a ModelCheck, as `aotcli check` has it

Baselines of tests and those of `aotcli check` lie in one folder, and `aotcli accept NAME` promotes both.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aotcli.analysis.summary import Plan
from aotcli.api.baselines import FOLDER, BaselineStore, check_name
from aotcli.api.judging import Keep, judge
from aotcli.errors import InputError
from aotcli.ir.amounts import parse_flops, parse_share
from aotcli.ir.check import CheckedModel, Limit, Limits, ModelCheck, Quantity, Structure, Tolerance
from aotcli.ir.sizes import parse_size

if TYPE_CHECKING:
    from aotcli.strategies import Strategy

_GROWING = (Quantity.SAVED, Quantity.PEAK)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.\-]+")
_LONGEST_NAME = 100
_WORDS = r"\w+(?:-\w+)*"
# Folders and a module in small letters, classes in capitals, a function, parameters, a part: ids of this form have
# names that no other id has.
_PLAIN_ID = re.compile(
    rf"(?:(?![A-Z]){_WORDS}/)*(?![A-Z])\w+\.py(?:::[A-Z]\w*)*::(?![A-Z])\w+(?:\[{_WORDS}\])?(?:--{_WORDS})?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that a figure may be: bytes or FLOPs, or for FLOPs a share of those that the step needs anyway."""

    quantity: Quantity
    most: int | None = None
    share: Fraction | None = None

    def limit(self, plan: Plan) -> Limit:
        """The limit that this is for a plan."""
        if self.share is None:
            return Limit(self.quantity, most=self.most)
        useful = plan.forward_flops + plan.backward_flops - plan.recompute_flops
        return Limit(self.quantity, most=int(useful * self.share))


def parse_demand(quantity: Quantity, value: object) -> Demand:
    """A demand as a mark states it: ``"24 MiB"``, ``"1 GFLOP"``, ``"5 %"``, or a whole number of bytes or FLOPs.

    Raises InputError where it is none of these.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Demand(quantity, value)
    if not isinstance(value, str):
        fix = 'write "24 MiB"' if quantity.in_bytes else 'write "1 GFLOP" or "5 %"'
        raise InputError(f"{value!r} is no amount", why="it takes a text with a unit", fix=fix)
    if quantity.in_bytes:
        return Demand(quantity, parse_size(value))
    share = parse_share(value)
    return Demand(quantity, parse_flops(value)) if share is None else Demand(quantity, share=share)


def parse_growth(value: object) -> Tolerance:
    """How much saved bytes and peak may grow: ``"1 %"``, ``"16 MiB"``, or a share between 0 and 1.

    Raises InputError where it is none of these.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return Tolerance(share=Fraction(str(value)))
    if not isinstance(value, str):
        raise InputError(
            f"growth={value!r}", why="a bare number is a share between 0 and 1", fix='write growth="1 %" or "16 MiB"'
        )
    share = parse_share(value)
    return Tolerance(amount=parse_size(value)) if share is None else Tolerance(share=share)


def parse_structure(text: str) -> Structure:
    """How alike the graph must be to the baseline's. Raises InputError for another word."""
    known = [each.value for each in Structure]
    if text not in known:
        near = get_close_matches(str(text), known, n=1)
        raise InputError(
            f"structure={text!r}",
            why=f"it is one of {', '.join(known)}",
            fix=f"did you mean {near[0]!r}?" if near else 'write structure="exact"',
        )
    return Structure(text)


def baseline_name(test_id: str, part: str | None = None) -> str:
    """The name of a test's baseline: its id as a file's name may be, with `part` where a test has several.

    ``tests/test_net.py::TestNet::test_memory[bf16]`` is ``tests.test_net.TestNet.test_memory-bf16``, and its part
    ``decoder`` has ``--decoder`` after it. An id that holds what a file's name cannot say, or that could be mistaken
    for another, is told apart by a few digits of a hash.
    """
    text = f"{test_id}--{part}" if part is not None else test_id
    name = re.sub(r"\.py(?=::)", "", text, count=1).replace("::", ".").replace("/", ".").replace("[", "-", 1)
    name = re.sub(r"\](?=$|--)", "", name, count=1)
    if not _PLAIN_ID.fullmatch(text) or len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{_NOT_IN_A_NAME.sub('-', name).lstrip('-.')[:_LONGEST_NAME]}-{digest}".lstrip("-")
    check_name(name)
    return name


def project_store(root: Path) -> BaselineStore:
    """The baselines of the project at `root`: the nearest folder of them at or above, else one that is yet to be made
    there. `aotcli accept` finds the same."""
    found = next((folder for folder in (root, *root.parents) if (folder / FOLDER).is_dir()), root)
    return BaselineStore(found / FOLDER)


@dataclass(frozen=True, slots=True)
class TestedStep:
    """What a test demands of one step. `growth`, `forbid_ops` and `structure` are as in `[tool.aotcli.check]`; without
    `baseline`, one is held to only where it has been accepted."""

    __test__ = False  # for pytest: this is none

    name: str
    test: str
    demands: tuple[Demand, ...] = ()
    growth: Tolerance = field(default_factory=Tolerance)
    forbid_ops: tuple[str, ...] = ()
    structure: Structure = Structure.IGNORE
    baseline: bool = True

    def limits(self, plan: Plan) -> Limits:
        """Limits of `plan`: the demands, and no more growth than is allowed."""
        grown = {demand.quantity: demand.limit(plan) for demand in self.demands}
        figures = [
            Limit(quantity, grown[quantity].most if quantity in grown else None, self.growth) for quantity in _GROWING
        ]
        figures += [limit for quantity, limit in grown.items() if quantity not in _GROWING]
        return Limits(tuple(figures), self.forbid_ops, self.structure)


def check_step(
    model: Any,
    inputs: Any,
    step: TestedStep,
    store: BaselineStore,
    keep: Keep,
    *,
    strategy: str | Strategy = "mincut",
    options: Mapping[str, object] | None = None,
    **capturing: Any,
) -> ModelCheck:
    """Capture and plan a step, and judge it as `aotcli check` would.

    `model`, `inputs` and `capturing` are what `aotcli.partition` takes. Raises what `partition` raises, and OutputError
    where a new baseline cannot be written.
    """
    from aotcli import api

    result = api.partition(model, inputs, strategy=strategy, options=options, alternatives=False, **capturing)
    checked = CheckedModel(
        name=step.name,
        spec=result.trace.model.spec,
        strategy=result.plan.label,
        limits=step.limits(result.plan),
        test=step.test,
    )
    if step.baseline or store.path(step.name).is_file():
        return judge(checked, result.trace, result.plan, store, keep)
    # Where only limits are demanded, nothing waits to become a baseline, and accepting one would be no help.
    found = judge(checked, result.trace, result.plan, store, Keep(write=False))
    return dataclasses.replace(found, accept_command="", look_command="")
