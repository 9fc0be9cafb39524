"""torchvision, made to load where only its Python half can."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

SHAPES: Final = "torchvision._meta_registrations"
_UNASKED: Final = ("nms", "qnms")
_kept: Final[list[Any]] = []


class HalfTorchvision(MetaPathFinder):
    """Declares the two operators whose shapes torchvision registers without asking whether they are there.

    Its wheels on PyPI are linked against a CUDA build of torch. Beside a CPU build their compiled half does not load,
    and whatever imports torchvision, as transformers does, fails on those operators (pytorch/vision#9085). Declared
    beforehand, they are merely without a kernel, and no model here calls them. It finds no module itself: it acts
    when the shapes are about to be registered, which is after the compiled half had its chance.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == SHAPES:
            declare()
        return None


def declare() -> None:
    """Declare the operators that no compiled half has registered. A second call does nothing."""
    torch = importlib.import_module("torch")
    absent = [name for name in _UNASKED if not _registered(torch, name)]
    if absent:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in absent:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


def install() -> None:
    """Put the finder before all others, once."""
    if not any(isinstance(finder, HalfTorchvision) for finder in sys.meta_path):
        sys.meta_path.insert(0, HalfTorchvision())


def _registered(torch: Any, name: str) -> bool:
    return hasattr(torch.ops.torchvision, name)
