"""Error codes of the compiler (`NCC_...`) and the runtime (`NRT ...`): `catalogs/devices/codes/neuron.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache

from neuronqa import bundled


@cache
def texts() -> Mapping[str, str]:
    """What each code means, by code: `NCC_EVRF004`, `NRT 1003`."""
    path = bundled.folder("catalogs") / "devices" / "codes" / "neuron.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    compiler = {line["code"]: line["text"] for line in data["compiler"]}
    return {**compiler, **{f"NRT {line['status']}": line["text"] for line in data["runtime"]}}


def runtime_error(status: int) -> str:
    """`NRT status 1003 (numerical error (NaN))`; of a status nobody documents, the number."""
    text = texts().get(f"NRT {status}")
    return f"NRT status {status} ({text})" if text else f"NRT status {status}"
