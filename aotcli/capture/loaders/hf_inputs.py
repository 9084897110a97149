"""Inputs and labels for a model of transformers, made to fit its configuration."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from aotcli.capture.inputs import materialize_inputs, parse_inputs
from aotcli.capture.overrides import Overrides
from aotcli.errors import WorkloadError
from aotcli.ir.trace import CaptureSettings

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_BATCH = 2
DEFAULT_TOKENS = 512
_AUDIO_SAMPLES = 16_000  # a second
_AUDIO_FRAMES = 1_000  # ten seconds
_TRANSCRIPT_TOKENS = 16


class Labels(enum.Enum):
    """What a task's labels look like."""

    TOKENS = "one token for each position"
    CLASS = "one class for each example"
    TOKEN_CLASSES = "one class for each position"
    SPAN = "a start and an end position"
    PIXELS = "one class for each pixel"
    TRANSCRIPT = "a short sequence of tokens"


def make_hf_inputs(
    main: str, config: Any, labels: Labels | None, settings: CaptureSettings, overrides: Overrides
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the model's forward, `main` being its first; ``--input`` replaces all but labels that it leaves out.

    ``--set batch=8 --set seq=1024`` size the default ones.
    """
    longest = getattr(config.get_text_config(), "max_position_embeddings", None) or DEFAULT_TOKENS
    longest = longest if longest > 0 else DEFAULT_TOKENS  # -1 stands for no limit
    sizes: dict[str, int] = {"batch": DEFAULT_BATCH}
    if main == "input_ids" or labels is Labels.TOKENS:
        sizes["seq"] = min(DEFAULT_TOKENS, longest)
    sizes.update(overrides.fields(dict(sizes)))
    if settings.inputs:
        args, given = materialize_inputs(parse_inputs(settings.inputs))
        if args:
            given = {main: args[0], **given}
        args = args[1:]
    else:
        args, given = (), _default_inputs(main, config, sizes)
    if labels is not None and main in given:
        given = {**_make_labels(labels, main, given[main], config, sizes), **given}
        given = {main: given.pop(main), **given}
    return args, given


def _default_inputs(main: str, config: Any, sizes: dict[str, int]) -> dict[str, Tensor]:
    import torch

    batch = sizes["batch"]
    if main == "input_ids":
        return {main: torch.randint(_vocabulary(config), (batch, sizes["seq"]))}
    if main == "pixel_values":
        shape = (_field(config, "num_channels", 3), *_image_size(config))
        frames = _field(config, "num_frames", None)
        return {main: torch.randn(batch, *shape) if frames is None else torch.randn(batch, frames, *shape)}
    mel_bins = _field(config, "num_mel_bins", None)
    if main == "input_features" and mel_bins is not None:
        return {main: torch.randn(batch, mel_bins, 2 * _field(config, "max_source_positions", 1500))}
    channels = _field(config, "input_feat_per_channel", None)
    if main == "input_features" and channels is not None:
        return {main: torch.randn(batch, _AUDIO_FRAMES, channels)}
    if main == "input_values":
        if mel_bins is not None:  # a spectrogram transformer
            return {main: torch.randn(batch, _field(config, "max_length", 1024), mel_bins)}
        return {main: torch.randn(batch, _AUDIO_SAMPLES)}
    raise WorkloadError(
        f"no default for the input {main!r} of {config.model_type}", fix=f"give it: --input '{main}=f32[2,80,3000]'"
    )


def _make_labels(labels: Labels, main: str, value: Tensor, config: Any, sizes: dict[str, int]) -> dict[str, Tensor]:
    import torch

    batch = value.shape[0]
    if labels is Labels.CLASS:
        return {"labels": torch.randint(config.num_labels, (batch,))}
    if labels is Labels.TOKEN_CLASSES:
        return {"labels": torch.randint(config.num_labels, (batch, value.shape[1]))}
    if labels is Labels.SPAN:
        positions = torch.randint(value.shape[1], (2, batch))
        return {"start_positions": positions[0].clone(), "end_positions": positions[1].clone()}
    if labels is Labels.PIXELS:
        return {"labels": torch.randint(config.num_labels, (batch, *value.shape[-2:]))}
    if labels is Labels.TRANSCRIPT:
        return {"labels": torch.randint(1, _vocabulary(config), (batch, _TRANSCRIPT_TOKENS))}
    length = value.shape[1] if main == "input_ids" else sizes["seq"]
    length = min(length, _field(config, "max_target_positions", length))
    return {"labels": torch.randint(_vocabulary(config), (batch, length))}


def _field(config: Any, name: str, default: Any) -> Any:
    """A field of the configuration or of those nested in it."""
    for part in (config, *(getattr(config, sub, None) for sub in ("vision_config", "text_config"))):
        value = getattr(part, name, None) if part is not None else None
        if value is not None:
            return value
    return default


def _vocabulary(config: Any) -> int:
    return config.get_text_config().vocab_size


def _image_size(config: Any) -> tuple[int, int]:
    size = _field(config, "image_size", 224)
    return (size[0], size[1]) if isinstance(size, (list, tuple)) else (size, size)
