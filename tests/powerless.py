"""Be nobody in particular: root reads and writes what it may not, so permissions are tested without that power."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

CAP_DAC_OVERRIDE: Final = 1
CAP_DAC_READ_SEARCH: Final = 2
CAP_SYS_ADMIN: Final = 21
PR_CAPBSET_DROP: Final = 24
PR_GET_SECUREBITS: Final = 27
PR_SET_SECUREBITS: Final = 28
SECBIT_NO_SETUID_FIXUP: Final = 4
VERSION_3: Final = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def powerless() -> Iterator[None]:
    """This thread obeys the permissions of files, whoever it runs as. (capabilities(7), access(2))"""
    if os.geteuid() != 0:
        yield
        return
    header, sets = _Header(VERSION_3, 0), (_Sets * 2)()
    _call(_libc.capget(ctypes.byref(header), sets))
    before, bits = sets[0].effective, _libc.prctl(PR_GET_SECUREBITS, 0, 0, 0, 0)
    _call(_libc.prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
    sets[0].effective = before & ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    _call(_libc.capset(ctypes.byref(header), sets))
    try:
        yield
    finally:
        sets[0].effective = before
        _call(_libc.capset(ctypes.byref(header), sets))
        _call(_libc.prctl(PR_SET_SECUREBITS, bits, 0, 0, 0))


def without_admin() -> None:
    """For `preexec_fn`: the child may administer nothing, even if it runs as root."""
    if os.geteuid() == 0:
        _call(_libc.prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0))


def _call(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
