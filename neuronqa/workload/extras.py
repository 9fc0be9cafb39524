"""Optional libraries, made to load where only half of them can."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from typing import Final

import torch

_UNASKED: Final = ("nms", "qnms")
_kept: Final[list[torch.library.Library]] = []


@cache
def load_torchvision() -> bool:
    """Import torchvision, which timm needs, and say whether that worked.

    Its wheels on PyPI are linked against a CUDA build of torch. Beside a CPU build their compiled half does not load,
    and the Python half fails on two operators whose shapes it registers without asking (pytorch/vision#9085). Declared
    beforehand, they are merely without a kernel, and no model here calls them.
    """
    if importlib.util.find_spec("torchvision") is None:
        return False
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            return False
    else:
        return True
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for name in _UNASKED:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)
    try:
        importlib.import_module("torchvision")
    except (RuntimeError, ImportError):
        return False
    return True


load_torchvision()
