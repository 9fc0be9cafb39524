"""A module that a person holds in Python, handed over to the processes that run it.

It travels as a pickle of its own code: classes and functions of files that are not installed go by value, so that what
is checked is what was defined here, in a notebook, a script or a test, and no child has to find its module.
"""

from __future__ import annotations

import hashlib
import io
import marshal
import sys
import sysconfig
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, Final

import cloudpickle

import neuronqa
from neuronqa.checkup.target import Target, of_factory
from neuronqa.errors import BadInput

_LOADER: Final = Path(neuronqa.__file__).parent / "workload" / "pickled.py"
_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")})


def hand_over(folder: Path, module: Any, inputs: Any, loss: Any = None, optimizer: Any = None) -> Target:
    """Write what is to be checked below `folder` and return it as a target. Raises BadInput for what cannot travel."""
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device.type != "cpu":
            raise BadInput(f"the module is on {tensor.device}", hint="hand it over on the CPU: module.cpu()")
    try:
        with _own_code_by_value():
            data = _pickled((module, inputs, loss, optimizer))
    except Exception as error:
        hint = "make it in a function and check that: neuronqa check FILE.py:FACTORY"
        raise BadInput(f"the module cannot be pickled: {type(error).__name__}: {error}", hint=hint) from error
    digest = hashlib.sha256(data).hexdigest()
    path = folder / f"{digest}.pickle"
    path.write_bytes(data)
    return of_factory(_LOADER, "load", {"path": str(path), "sha256": digest}, title=type(module).__name__)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps the file names of code, which cloudpickle drops: a blocker is to be named by its line."""

    dispatch_table: ClassVar[Any] = ChainMap(
        {CodeType: lambda code: (marshal.loads, (marshal.dumps(code),))}, cloudpickle.Pickler.dispatch_table
    )


def _pickled(value: Any) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


@contextmanager
def _own_code_by_value() -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    own = [one for one in list(sys.modules.values()) if _is_own(one) and one.__name__ not in known]
    for one in own:
        cloudpickle.register_pickle_by_value(one)
    try:
        yield
    finally:
        for one in own:
            cloudpickle.unregister_pickle_by_value(one)


def _is_own(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or module.__name__ == "__main__":
        return False
    return not file.startswith((*_INSTALLED, str(_LOADER.parents[1]))) and sys.modules.get(module.__name__) is module
