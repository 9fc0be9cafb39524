"""`torch_neuronx`: the module scripts written for the real device import, under its real names.

It is never installed as a file and never stands over a real installation. `install` makes it importable in this
process; it has to come before transformers and accelerate look for it, because they remember that it was not there.
"""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any, Final

NAME: Final = "torch_neuronx"


def make(shim: Any) -> types.ModuleType:
    """The module over a loaded device."""
    module = types.ModuleType(NAME, "The simulated device under TorchNeuron's names.")
    module.__spec__ = ModuleSpec(NAME, None)
    module.__dict__.update(
        __version__="0.0+simulated",
        get_fallback_ops=shim.listed_fallback,
        get_executed_ops=shim.listed_executed,
        clear_op_tracking=shim.clear_listed,
    )
    return module


def install(shim: Any) -> bool:
    """Make `import torch_neuronx` work; False, and nothing done, where the real one is installed."""
    if NAME in sys.modules or find_spec(NAME) is not None:
        return False
    sys.modules[NAME] = make(shim)
    return True
