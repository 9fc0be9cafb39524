"""What a build order names on the driver's machine, as it travels to others: by content, whatever its path there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from neuronqa.domain.build import BuildOrder


@dataclass(frozen=True)
class Parcel:
    """Files by the path an order names them by."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, order: BuildOrder) -> Parcel:
        """The device's binary, its profile if that is a file, and its overlays."""
        named = (order.binary, order.profile, *order.overlays)
        return cls({name: Path(name).read_bytes() for name in named if name and Path(name).is_file()})


class Unpacked:
    """A parcel's files below a folder of this machine, each in one named by its content."""

    def __init__(self, parcel: Parcel, folder: Path) -> None:
        self._places: dict[str, str] = {}
        for name, content in parcel.files.items():
            place = folder / hashlib.sha256(content).hexdigest() / Path(name).name
            place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o444)
            self._places[name] = str(place)

    def here(self, order: BuildOrder) -> BuildOrder:
        """The same order with the paths of this machine."""
        return replace(
            order,
            binary=self._places.get(order.binary, order.binary),
            profile=self._places.get(order.profile, order.profile),
            overlays=tuple(self._places.get(name, name) for name in order.overlays),
        )
