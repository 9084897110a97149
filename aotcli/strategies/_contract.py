"""What a strategy is: a frozen dataclass whose fields are its command-line options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition


@dataclass(frozen=True)
class Strategy(ABC):
    """Decides what one joint graph saves.

    Subclasses are frozen dataclasses; each field is an option, with its help in `field(metadata={"help": ...})`.
    `summary` is one line for `aotcli strategies`. `needs_live` marks strategies that need the captured GraphModule
    (PyTorch's own functions); they cannot plan a record. `argument` is the option that ``name:VALUE`` sets.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    needs_live: ClassVar[bool] = False
    argument: ClassVar[str | None] = None

    @abstractmethod
    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        """Plan `graph`. `live` is the `LiveRegion` of the capture, for strategies that need it.

        Raises StrategyError where the graph cannot be planned, PlanImpossibleError where annotations contradict
        each other.
        """

    def partition_function(self) -> Callable[..., Any] | None:
        """The partition function of AOTAutograd's kind that this strategy is, where it is one: it splits by itself."""
        return None

    @property
    def options(self) -> dict[str, object]:
        return asdict(self)
