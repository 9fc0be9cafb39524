"""Honest model-coverage CI for PyTorch accelerators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neuronqa import extras

if TYPE_CHECKING:
    from neuronqa.checkup.api import check as check

__version__ = "0.1.0"

extras.install()


def __getattr__(name: str) -> Any:
    """`neuronqa.check`, loaded when it is asked for."""
    if name == "check":
        return import_module("neuronqa.checkup.api").check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
