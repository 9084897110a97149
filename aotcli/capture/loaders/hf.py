"""``hf:NAME_OR_CONFIG.json``: a model type of transformers, made from its configuration with random weights.

Nothing is downloaded. The class is the one named by the configuration's `architectures`, else that of the task which
the type is trained for; it gets labels, so that its output carries a loss.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aotcli.capture.loaders.hf_inputs import Labels, make_hf_inputs
from aotcli.capture.loaders.vision_ops import import_beside_torchvision
from aotcli.capture.overrides import Overrides
from aotcli.capture.project import project_root, relative_to_root
from aotcli.capture.workload import Definition, Workload
from aotcli.errors import AotcliError, EnvironmentProblem, WorkloadError
from aotcli.ir.trace import CaptureSettings

_TASKS: tuple[tuple[str, Labels], ...] = (
    ("SPEECH_SEQ_2_SEQ", Labels.TOKENS),
    ("SEQ_TO_SEQ_CAUSAL_LM", Labels.TOKENS),
    ("MASKED_LM", Labels.TOKENS),
    ("CAUSAL_LM", Labels.TOKENS),
    ("IMAGE_CLASSIFICATION", Labels.CLASS),
    ("CTC", Labels.TRANSCRIPT),
    ("SEMANTIC_SEGMENTATION", Labels.PIXELS),
    ("AUDIO_CLASSIFICATION", Labels.CLASS),
    ("VIDEO_CLASSIFICATION", Labels.CLASS),
    ("SEQUENCE_CLASSIFICATION", Labels.CLASS),
    ("TOKEN_CLASSIFICATION", Labels.TOKEN_CLASSES),
    ("QUESTION_ANSWERING", Labels.SPAN),
)
"""Transformers' task mappings with what labels look like, in order of choice: an encoder-decoder is trained as one,
and an encoder (most of which have a causal head too) on masked tokens."""
_OF_ENCODER_DECODERS = ("SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM")


def hf_workload(spec: str, settings: CaptureSettings) -> Workload:
    """The workload of a model type or configuration file. Raises WorkloadError where the file cannot be read."""
    name = spec.removeprefix("hf:")
    root = project_root(Path.cwd())
    path = Path(name)
    if name.endswith(".json"):
        fields = _read_config(path)
        shown = f"hf:{relative_to_root(path, root)}"
        return Workload(path.stem, shown, root, lambda: _define(shown, fields, settings), (path.resolve(),))
    if not name or "/" in name:
        raise WorkloadError(
            f"{spec!r} names no model type",
            why="nothing is downloaded: hf: takes a model type (hf:llama) or a configuration file",
            fix="save the model's config.json and give hf:config.json",
        )
    return Workload(name, spec, root, lambda: _define(spec, {"model_type": name}, settings))


def _read_config(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkloadError(
            f"cannot read {path}",
            why=error.strerror or str(error),
            fix="give a config.json, or the name of a model type",
        ) from error
    except ValueError as error:
        raise WorkloadError(f"{path} is not JSON", why=str(error), fix="give a config.json of transformers") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("model_type"), str):
        raise WorkloadError(
            f"{path} is no configuration of transformers", why="it has no `model_type`", fix="give a config.json"
        )
    return fields


def _define(spec: str, fields: dict[str, Any], settings: CaptureSettings) -> Definition:
    transformers = _import_transformers()
    overrides = Overrides(settings.overrides)
    config = _make_config(transformers, spec, fields, overrides)
    class_name, labels = _choose_class(transformers, spec, config)
    _set_if_there(config, "use_cache", False)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
    model_class = _import_class(transformers, spec, class_name)
    args, kwargs = make_hf_inputs(
        model_class.main_input_name, config, labels if settings.loss else None, settings, overrides
    )
    overrides.check_used(spec)
    model = _make_model(transformers, spec, model_class, config)
    notes = () if labels is not None else (f"{class_name} has no loss of its own",)
    in_output = settings.loss and labels is not None
    return Definition(model.train(), args, kwargs, loss_in_output=in_output, notes=notes)


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise EnvironmentProblem("hf: needs transformers", why=str(error), fix="pip install 'aotcli[hf]'") from error
    return transformers


def _make_config(transformers: Any, spec: str, fields: dict[str, Any], overrides: Overrides) -> Any:
    kind = fields["model_type"]
    if kind not in transformers.CONFIG_MAPPING:
        near = get_close_matches(kind, list(transformers.CONFIG_MAPPING), n=3, cutoff=0.5)
        raise WorkloadError(
            f"{spec}: transformers {transformers.__version__} has no model type {kind!r}",
            fix=f"did you mean {', '.join(f'hf:{each}' for each in near)}?" if near else "give a config.json",
        )
    config_class = _lazily(spec, lambda: transformers.CONFIG_MAPPING[kind])
    given = {key: value for key, value in fields.items() if key not in ("model_type", "transformers_version")}
    defaults = _construct(config_class, spec, given)
    changed = overrides.fields(_known_fields(defaults))
    if "architectures" in changed and isinstance(changed["architectures"], str):
        changed["architectures"] = [changed["architectures"]]
    if not changed:
        return defaults
    return _construct(config_class, spec, {**_without_derived(given, defaults, changed), **changed})


def _construct(config_class: Any, spec: str, fields: dict[str, Any]) -> Any:
    try:
        return config_class(**fields)
    except Exception as error:
        raise WorkloadError(
            f"{spec}: its configuration is refused",
            why=f"{type(error).__name__}: {error}",
            fix="correct that field, in the file or by --set NAME=VALUE",
        ) from error


def _known_fields(config: Any) -> dict[str, Any]:
    """Fields that may be set, with their values; the common names of fields that the type calls otherwise, too."""
    known = {key: value for key, value in config.to_dict().items() if key != "model_type"}
    return {**known, **{alias: known.get(own) for alias, own in config.attribute_map.items()}}


def _without_derived(given: dict[str, Any], before: Any, changed: dict[str, Any]) -> dict[str, Any]:
    """The given fields less the lists with one entry for each layer, where the number of layers changes."""
    if not {"num_hidden_layers", before.attribute_map.get("num_hidden_layers")} & changed.keys():
        return given
    layers = before.num_hidden_layers
    return {key: value for key, value in given.items() if not (isinstance(value, list) and len(value) == layers)}


def _choose_class(transformers: Any, spec: str, config: Any) -> tuple[str, Labels | None]:
    """The model class's name and what its labels look like; None for a class that has no loss we know."""
    from transformers.models.auto import modeling_auto

    tasks = [(vars(modeling_auto)[f"MODEL_FOR_{task}_MAPPING_NAMES"], labels) for task, labels in _TASKS]
    wanted = (config.architectures or [None])[0]
    if wanted is not None:
        found = [labels for names, labels in tasks if wanted in names.values()]
        return wanted, found[0] if found else None
    for (task, labels), (names, _) in zip(_TASKS, tasks, strict=True):
        # Many types have heads for several tasks: the configuration tells what they are used as.
        refused = (task in _OF_ENCODER_DECODERS and not config.is_encoder_decoder) or (
            task == "MASKED_LM" and getattr(config, "is_decoder", False)
        )
        if not refused and config.model_type in names:
            return _first(names[config.model_type]), labels
    if config.model_type in modeling_auto.MODEL_MAPPING_NAMES:
        return _first(modeling_auto.MODEL_MAPPING_NAMES[config.model_type]), None
    raise WorkloadError(
        f"{spec}: transformers has no model class for {config.model_type!r}",
        why="the type is a part of other models, or made for something else than training",
        fix="name the model that it is part of, or build it in a file of your own",
    )


def _first(names: str | tuple[str, ...]) -> str:
    return names if isinstance(names, str) else names[0]


def _set_if_there(config: Any, field: str, value: Any) -> None:
    if field in config.to_dict():
        setattr(config, field, value)


def _import_class(transformers: Any, spec: str, name: str) -> Any:
    try:
        return _lazily(spec, lambda: getattr(transformers, name))
    except AttributeError as error:
        raise WorkloadError(
            f"{spec}: transformers has no class {name!r}",
            why="named by `architectures`",
            fix="leave `architectures` out of the configuration, or install the transformers that has it",
        ) from error


def _lazily(spec: str, get: Callable[[], Any]) -> Any:
    """What `get` returns. transformers imports its parts when they are named, and torchvision with some of them."""
    try:
        return get()
    except (ImportError, RuntimeError) as error:
        if importlib.util.find_spec("torchvision") is None:
            raise EnvironmentProblem(
                f"{spec}: transformers cannot be imported", why=str(error), fix="pip install --upgrade transformers"
            ) from error
    try:
        import_beside_torchvision("torchvision")
        return get()
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(
            f"{spec}: transformers cannot be imported", why=str(error), fix="pip install --upgrade transformers"
        ) from error


def _make_model(transformers: Any, spec: str, model_class: Any, config: Any) -> Any:
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        model = model_class(config)
        return model if config.dtype is None else model.to(config.dtype)
    except AotcliError:
        raise
    except Exception as error:
        raise WorkloadError(
            f"{spec}: {model_class.__name__} raised while it was built",
            why=f"{type(error).__name__}: {error}",
            fix="other settings may do: --set NAME=VALUE; --debug shows the whole traceback",
        ) from error
    finally:
        transformers.logging.set_verbosity(verbosity)
