"""A module that was handed over as it is (`neuronqa.check`): read back from the file it was written to."""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from cloudpickle import cloudpickle


def load(path: str, sha256: str) -> Any:
    """What `neuronqa.checkup.given` wrote. Raises ValueError for anything else in its place."""
    data = Path(path).read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError("not the file that was written")
    with io.BytesIO(data) as file:
        reader = _Reader(file)
        value = reader.load()
    for namespace in reader.namespaces:
        _publish(namespace)
    return value


class _Reader(pickle.Unpickler):
    """Remembers the globals of the functions it makes: they belong to modules that this process never imported."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.namespaces: list[dict[str, Any]] = []

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        found = super().find_class(module_name, global_name)
        return self._function if found is cloudpickle._make_function else found

    def _function(self, code: Any, namespace: dict[str, Any], *rest: Any) -> Any:
        if not any(namespace is known for known in self.namespaces):
            self.namespaces.append(namespace)
        return cloudpickle._make_function(code, namespace, *rest)


def _publish(namespace: dict[str, Any]) -> None:
    """Let the module a function says it is of hold what the function uses: dynamo's guards look there, not in it."""
    home = sys.modules.setdefault(namespace["__name__"], ModuleType(namespace["__name__"]))
    vars(home).update({name: value for name, value in namespace.items() if not name.startswith("__")})
