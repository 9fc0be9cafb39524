"""The differences between the device and the CPU that are known, each with its reason: `catalogs/devices/opinfo/`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase

from neuronqa import bundled
from neuronqa.errors import BadInput


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of the table: operators by pattern, in the dtypes it holds for (all, if none is named)."""

    ops: tuple[str, ...]
    reason: str
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """The table."""

    differences: tuple[Difference, ...] = ()

    def reason(self, op: str, dtype: str) -> str:
        """Why `op` may differ in `dtype`; empty if it may not."""
        for difference in self.differences:
            right_dtype = not difference.dtypes or dtype in difference.dtypes
            if right_dtype and any(fnmatchcase(op, pattern) for pattern in difference.ops):
                return difference.reason
        return ""


def load() -> Explained:
    """Read the bundled table. Raises BadInput for a line without a reason."""
    path = bundled.folder("catalogs") / "devices" / "opinfo" / "differences.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    found = []
    for line in data.get("difference", []):
        if not line.get("reason", "").strip() or not line.get("ops"):
            raise BadInput(f"a known difference has no reason or no operators: {line}", where=str(path))
        found.append(Difference(tuple(line["ops"]), line["reason"], tuple(line.get("dtypes", ()))))
    return Explained(tuple(found))
