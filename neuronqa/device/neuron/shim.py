"""Loads the device's compiled part into this process."""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from neuronqa.device.neuron.build import MODULE
from neuronqa.errors import EnvironmentFault


def load(path: Path) -> Any:
    """Return the extension module at `path`.

    Raises EnvironmentFault when it is not there or does not fit this torch.
    """
    import torch  # noqa: F401  its libraries must be loaded first

    loaded = sys.modules.get(MODULE)
    if loaded is not None:
        return loaded
    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, str(path)))
    if spec is None or spec.loader is None or not path.is_file():
        raise EnvironmentFault("the built device is missing", where=str(path), hint="run `neuronqa device build`")
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise EnvironmentFault(
            f"the built device does not fit this PyTorch: {error}", where=str(path), hint="run `neuronqa device build`"
        ) from error
    sys.modules[MODULE] = module
    return module
