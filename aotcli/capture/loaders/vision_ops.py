"""Importing libraries that stand on torchvision where its compiled ops do not load.

The wheels of torchvision from PyPI do not load beside a torch without CUDA, and torchvision then raises while it
registers its Python part. The ops are for detection heads: declaring them is enough to import the rest.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_SCHEMAS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def import_beside_torchvision(name: str) -> ModuleType:
    """Import a module; where torchvision's ops are what is missing, declare them and try again. Raises ImportError."""
    try:
        return importlib.import_module(name)
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise ImportError(f"{name} raised {error}") from error
    import torch

    _forget("torchvision", name)
    for op, schema in _SCHEMAS.items():
        torch.library.define(op, schema)
    try:
        return importlib.import_module(name)
    except RuntimeError as error:
        raise ImportError(f"{name} raised {error}") from error


def _forget(*packages: str) -> None:
    """Drop what a failed import left behind, so that the next one starts anew."""
    for name in list(sys.modules):
        if name.split(".")[0] in packages:
            del sys.modules[name]
