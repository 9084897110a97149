"""Options that several commands share, each written once.

A command takes a parameter `given: GivenCapture` or `output: OutputOptions` and is decorated with `capture_options` or
`output_options`; the decorator puts the group's options into the signature that Typer reads.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

INTERRUPTED = 130
CAPTURE_PANEL = "Capture (for a MODEL)"
OUTPUT_PANEL = "Output"


@dataclass(frozen=True, slots=True)
class GivenCapture:
    """Capture options as given on the command line; None, or empty, where they were not."""

    inputs: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    device: str | None = None
    dtype: str | None = None
    autocast: str | None = None
    level: str | None = None
    dynamic: bool | None = None
    tensors: str | None = None
    seed: int | None = None
    train: bool | None = None
    loss: bool | None = None
    cache: bool | None = None
    with_source: bool | None = None
    anonymize: bool | None = None

    def over(self, lower: GivenCapture) -> GivenCapture:
        """These options where they were given, else those of `lower`; `--set` pairs add up, these last."""
        changes = {name: value for name, value in dataclasses.asdict(self).items() if value is not None and value != ()}
        if "overrides" in changes:
            changes["overrides"] = (*lower.overrides, *self.overrides)
        return dataclasses.replace(lower, **changes)


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How much to say, and in which colours."""

    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def _capture(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel=CAPTURE_PANEL, show_default=False)


_Input = Annotated[list[str] | None, _capture("--input", "An input: 'i64[2,128]<50257', 'x=f32[8,16]'.", "SPEC")]
_Set = Annotated[list[str] | None, _capture("--set", "Set an argument of the model's or inputs' factory.", "K=V")]
_Device = Annotated[str | None, _capture("--device", "cpu (default) or cuda.", "DEVICE")]
_Dtype = Annotated[str | None, _capture("--dtype", "Convert parameters and floating inputs.", "DTYPE")]
_Autocast = Annotated[str | None, _capture("--autocast", "Run under autocast to this dtype.", "DTYPE")]
_Level = Annotated[str | None, _capture("--level", "inductor (default), as torch.compile; or aten.", "LEVEL")]
_Dynamic = Annotated[bool | None, _capture("--dynamic/--no-dynamic", "Make input sizes symbolic.")]
_Tensors = Annotated[str | None, _capture("--tensors", "auto (default), fake or real.", "KIND")]
_Seed = Annotated[int | None, _capture("--seed", "Seed of weights and inputs; default 0.", "N")]
_Train = Annotated[bool | None, _capture("--train/--eval", "Put the model in this mode.")]
_Loss = Annotated[bool | None, _capture("--loss/--no-loss", "With the loss (default), or the model alone.")]
_Cache = Annotated[bool | None, _capture("--cache/--no-cache", "Use earlier captures (default), or capture anew.")]
_WithSource = Annotated[bool | None, _capture("--with-source", "Keep the text of source lines in the record.")]
_Anonymize = Annotated[bool | None, _capture("--anonymize", "Hash names and paths in the record.")]


def _given_capture(
    inputs: _Input = None,
    overrides: _Set = None,
    device: _Device = None,
    dtype: _Dtype = None,
    autocast: _Autocast = None,
    level: _Level = None,
    dynamic: _Dynamic = None,
    tensors: _Tensors = None,
    seed: _Seed = None,
    train: _Train = None,
    loss: _Loss = None,
    cache: _Cache = None,
    with_source: _WithSource = None,
    anonymize: _Anonymize = None,
) -> GivenCapture:
    return GivenCapture(
        inputs=tuple(inputs or ()),
        overrides=tuple(overrides or ()),
        device=device,
        dtype=dtype,
        autocast=autocast,
        level=level,
        dynamic=dynamic,
        tensors=tensors,
        seed=seed,
        train=train,
        loss=loss,
        cache=cache,
        with_source=with_source,
        anonymize=anonymize,
    )


def _output_options(
    color: Annotated[
        str, typer.Option(help="auto, always or never.", metavar="WHEN", rich_help_panel=OUTPUT_PANEL)
    ] = "auto",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No notes, progress or next steps.", rich_help_panel=OUTPUT_PANEL)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more, step by step.", rich_help_panel=OUTPUT_PANEL)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT_PANEL)
    ] = False,
) -> OutputOptions:
    return OutputOptions(color, quiet, verbose, debug)


def capture_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the capture options; it receives them as `given`."""
    return _with_group(command, "given", _given_capture)


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the output options; it receives them as `output`. Ctrl-C ends it with exit code 130."""

    @functools.wraps(command)
    def interruptible(**arguments: Any) -> None:
        try:
            command(**arguments)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    return _with_group(interruptible, "output", _output_options)


def _with_group(command: Callable[..., None], parameter: str, group: Callable[..., Any]) -> Callable[..., None]:
    own = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(group, eval_str=True).parameters
    parameters = [each for each in own if each.name != parameter] + list(shared.values())

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        gathered = group(**{name: arguments.pop(name) for name in shared})
        command(**arguments, **{parameter: gathered})

    run.__signature__ = inspect.Signature([each.replace(kind=each.KEYWORD_ONLY) for each in parameters])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
