"""The Linux calls that Python 3.11 has no name for, by their own names. Errors are OSError, as usual."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

CAP_CHOWN: Final = 0
CAP_DAC_READ_SEARCH: Final = 2
CAP_KILL: Final = 5
CAP_SETGID: Final = 6
CAP_SETUID: Final = 7

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_MOUNT_ATTR_RDONLY = 1
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_IPC_RMID = 0
_MADV_COLLAPSE = 25
_HUGE_PAGE = 2 << 20
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_SYS_IO_URING_SETUP = 425
_AUDIT_ARCHES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""AUDIT_ARCH_* of linux/audit.h and the number of socket(2)."""
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x0005_0000, 0x7FFF_0000

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _checked(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(option, *padded), f"prctl({option})")


def die_with_parent(parent: int, sign: signal.Signals = signal.SIGKILL) -> None:
    """Send this process `sign` when its parent ends; leave at once if `parent` is gone already.

    The kernel forgets this on every change of user, so it comes last.
    It fires when the *thread* that made this process ends (prctl(2)).
    """
    _prctl(_PR_SET_PDEATHSIG, sign)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def make_mounts_private() -> None:
    """What this mount namespace mounts from now on is seen in no other."""
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)


def mount_proc() -> None:
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def mount_memory(place: Path, size: int) -> None:
    """Mount an empty folder in memory that holds at most `size` bytes."""
    _mount("tmpfs", str(place), "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode=1777")


def bind(source: Path, place: Path) -> None:
    _mount(str(source), str(place), "", _MS_BIND | _MS_REC)


def set_read_only(place: Path, *, recursive: bool) -> None:
    _mount_setattr(place, _MOUNT_ATTR_RDONLY, 0, recursive=recursive)


def set_writable(place: Path) -> None:
    _mount_setattr(place, 0, _MOUNT_ATTR_RDONLY, recursive=False)


def remove_shared_memory(segment: int) -> None:
    """Remove a System V segment once nobody is attached to it."""
    _checked(_libc.shmctl(segment, _IPC_RMID, None), f"shmctl({segment})")


def raise_loopback() -> None:
    """Bring `lo` up in this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def use_huge_pages() -> None:
    """Back this process's own memory by huge pages where it can be: a fork copies one entry for 512.

    Best effort (madvise(2), MADV_COLLAPSE, Linux 6.1): what cannot be collapsed stays as it is.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, _, *name = line.split()
        if rights.startswith("rw") and name in ([], ["[heap]"]):
            first, end = (int(bound, 16) for bound in span.split("-"))
            for address in range(-first // _HUGE_PAGE * -_HUGE_PAGE, end - _HUGE_PAGE + 1, _HUGE_PAGE):
                _libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE_PAGE), _MADV_COLLAPSE)


def capabilities() -> int:
    """The effective capabilities of this process, one bit each."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def become_user(uid: int) -> None:
    """Turn from root into `uid` that can read whatever root could, and do nothing else root could.

    Reading stays because an installation may lie below a folder that only root may enter.
    """
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    _set_capabilities(1 << CAP_DAC_READ_SEARCH)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)
    _prctl(_PR_SET_DUMPABLE, 1)


def drop_capabilities() -> None:
    _set_capabilities(0)


def forbid_new_privileges() -> None:
    """No program this process starts gains a privilege from its file."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_network() -> None:
    """Let this process and its descendants make sockets of the local kinds only.

    A seccomp filter (seccomp(2)) on `socket`, and on io_uring, which makes sockets without it. Only on the machines
    whose call numbers are known; needs :func:`forbid_new_privileges` first.
    """
    known = _AUDIT_ARCHES.get(os.uname().machine)
    if known is None:
        return
    arch, socket_call = known
    program = (
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_JUMP_IF_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),  # another machine's calls have other numbers
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
        (_JUMP_IF_EQUAL, 4, 0, _SYS_IO_URING_SETUP),
        (_JUMP_IF_EQUAL, 0, 4, socket_call),
        (_LOAD, 0, 0, 16),  # seccomp_data.args[0]: the address family
        (_JUMP_IF_EQUAL, 2, 0, socket.AF_UNIX),
        (_JUMP_IF_EQUAL, 1, 0, socket.AF_NETLINK),
        (_RETURN, 0, 0, _REFUSE | errno.EACCES),
        (_RETURN, 0, 0, _ALLOW),
    )
    install_filter(program)


def install_filter(program: Sequence[tuple[int, int, int, int]]) -> None:
    """Filter the system calls of this process and its descendants by a BPF program: code, two distances, a value."""
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    steps = ctypes.create_string_buffer(code, len(code))
    filter_ = _Filter(len(program), ctypes.addressof(steps))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(filter_))


def _set_capabilities(bits: int) -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    data = struct.pack("=6I", low, low, low, high, high, high)
    _checked(_libc.capset(header, data), "capset")


def _mount(source: str, place: str, kind: str, flags: int, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), os.fsencode(place), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, f"mount {place}")


def _mount_setattr(place: Path, set_: int, clear: int, *, recursive: bool) -> None:
    attributes = _MountAttr(set_, clear, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_long(_AT_FDCWD),
        os.fsencode(place),
        ctypes.c_ulong(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _checked(result, f"mount_setattr {place}")
