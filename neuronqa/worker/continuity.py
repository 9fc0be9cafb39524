"""Is memory still what the operator that wrote to it left in it? What changes between operators no operator is to blame
for: memory that something else wrote over."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef


class Continuity:
    """Remembers a checksum of all memory an operator was seen to write, as long as it lives and no operator writes to
    it again; read through whatever view."""

    def __init__(self) -> None:
        self._left: dict[int, tuple[StorageWeakRef, int, int]] = {}

    def left(self, tensors: Iterable[Tensor]) -> None:
        """An operator has just returned or written these."""
        for tensor in tensors:
            storage = StorageWeakRef(tensor.untyped_storage())
            self._left[storage.cdata] = (storage, tensor._version, _checksum(tensor))

    def broken(self, tensors: Iterable[Tensor]) -> Tensor | None:
        """The first of these that is not what was left in it."""
        for tensor in tensors:
            place = StorageWeakRef(tensor.untyped_storage()).cdata
            known = self._left.get(place)
            if known is None:
                continue
            storage, version, checksum = known
            if storage.expired():
                del self._left[place]  # The memory was given back, and this is another tensor's.
            elif version == tensor._version and checksum != _checksum(tensor):
                return tensor
        return None


def _checksum(tensor: Tensor) -> int:
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),), (1,))
    return crc32(whole.cpu().numpy().tobytes())
