"""Is a tensor still what the operator that made it left in it? What changes between operators no operator is to blame
for: memory that something else wrote over."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from neuronqa.worker.trees import to_array

_Key = tuple[int, int, tuple[int, ...], tuple[int, ...], str]


class Continuity:
    """Remembers a checksum of every tensor an operator was seen to leave, as long as its memory lives and no operator
    writes to it."""

    def __init__(self) -> None:
        self._left: dict[_Key, tuple[StorageWeakRef, int, int]] = {}

    def left(self, tensors: Iterable[Tensor]) -> None:
        """An operator has just returned or written these."""
        for tensor in tensors:
            storage = StorageWeakRef(tensor.untyped_storage())
            self._left[_key(tensor)] = (storage, tensor._version, _checksum(tensor))

    def broken(self, tensors: Iterable[tuple[Tensor, Tensor]]) -> Tensor | None:
        """The first of these (device tensor, its copy on the host) that is not what was left in it."""
        for tensor, host in tensors:
            known = self._left.get(_key(tensor))
            if known is None:
                continue
            storage, version, checksum = known
            if storage.expired() or storage.cdata != StorageWeakRef(tensor.untyped_storage()).cdata:
                del self._left[_key(tensor)]  # The memory was given back, and this is another tensor in its place.
            elif version == tensor._version and checksum != _checksum(host):
                return tensor
        return None


def _key(tensor: Tensor) -> _Key:
    place = tensor.untyped_storage().data_ptr()
    return place, int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype)


def _checksum(tensor: Tensor) -> int:
    return crc32(to_array(tensor)[0].tobytes())
