"""A filter on system calls for a child that runs what a stranger wrote (seccomp(2)).

It forbids what no operator needs and exploits begin with: other programs, other processes' memory, namespaces, mounts,
modules, keys, tracing, and sockets other than local ones. It comes on top of namespaces and users, not instead.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from typing import Final

from neuronqa.worker import linux

_ARCHES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h."""
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_CLONE3: Final = 435
_FORBIDDEN: Final = {
    "x86_64": {
        "ptrace": 101, "personality": 135, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166,
        "swapon": 167, "reboot": 169, "init_module": 175, "delete_module": 176, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304,
        "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313, "kexec_file_load": 320,
        "bpf": 321, "execve": 59, "execveat": 322, "userfaultfd": 323,
    },
    "aarch64": {
        "ptrace": 117, "personality": 92, "pivot_root": 41, "chroot": 51, "acct": 89, "mount": 40, "umount2": 39,
        "swapon": 224, "reboot": 142, "init_module": 105, "delete_module": 106, "kexec_load": 104, "add_key": 217,
        "request_key": 218, "keyctl": 219, "unshare": 97, "perf_event_open": 241, "open_by_handle_at": 265,
        "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273, "kexec_file_load": 294,
        "bpf": 280, "execve": 221, "execveat": 281, "userfaultfd": 282,
    },
}  # fmt: skip
_EVERYWHERE: Final = {"io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "mount_setattr": 442}
"""The same number on every architecture."""
_NAMESPACES: Final = 0x7E02_0000
"""The flags of clone(2) that make one."""
_OTHER_ABI: Final = 0x4000_0000
"""Numbers of the x32 calls begin here."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ARCH, _NUMBER, _FIRST_ARGUMENT = 4, 0, 16
"""Offsets in seccomp_data."""
_ERROR, _ALLOW = 0x0005_0000, 0x7FFF_0000

Step = tuple[int, int, str, str]
"""Code, value, and where to go if it holds and if not; the next step where no place is named."""


def shut_in() -> bool:
    """Apply the filter to this process and its descendants; False on a machine whose call numbers are not known.

    Needs :func:`linux.forbid_new_privileges` first, and one thread.
    """
    machine = os.uname().machine
    if machine not in _ARCHES:
        return False
    linux.install_filter(program())
    return True


def forbidden() -> dict[str, int]:
    """The calls that are refused whatever their arguments, with their numbers on this machine."""
    return {**_FORBIDDEN[os.uname().machine], **_EVERYWHERE}


def program() -> tuple[tuple[int, int, int, int], ...]:
    """The filter for this machine."""
    return assembled(list(_program(os.uname().machine)))


def _program(machine: str) -> Iterator[Step | str]:
    """Steps, and names of places."""
    yield (_LOAD, _ARCH, "", "")
    yield (_EQUAL, _ARCHES[machine], "", "refuse")
    yield (_LOAD, _NUMBER, "", "")
    yield (_AT_LEAST, _OTHER_ABI, "refuse", "")
    for number in forbidden().values():
        yield (_EQUAL, number, "refuse", "")
    yield (_EQUAL, _CLONE3, "unknown", "")
    yield (_EQUAL, _CLONE[machine], "clone", "")
    yield (_EQUAL, _SOCKET[machine], "socket", "allow")
    yield "clone"
    yield (_LOAD, _FIRST_ARGUMENT, "", "")
    yield (_ANY_BIT, _NAMESPACES, "refuse", "allow")
    yield "socket"
    yield (_LOAD, _FIRST_ARGUMENT, "", "")
    yield (_EQUAL, socket.AF_UNIX, "allow", "")
    yield (_EQUAL, socket.AF_NETLINK, "allow", "refuse")
    yield "refuse"
    yield (_RETURN, _ERROR | errno.EPERM, "", "")
    yield "unknown"  # its arguments lie in memory; the C library then takes clone instead
    yield (_RETURN, _ERROR | errno.ENOSYS, "", "")
    yield "allow"
    yield (_RETURN, _ALLOW, "", "")


def assembled(lines: list[Step | str]) -> tuple[tuple[int, int, int, int], ...]:
    """Steps with distances in place of names: code, distance if it holds, distance if not, value."""
    places: dict[str, int] = {}
    steps: list[Step] = []
    for line in lines:
        if isinstance(line, str):
            places[line] = len(steps)
        else:
            steps.append(line)

    def distance(at: int, name: str) -> int:
        return places[name] - at - 1 if name else 0

    return tuple((code, distance(at, yes), distance(at, no), value) for at, (code, value, yes, no) in enumerate(steps))
