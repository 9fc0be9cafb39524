"""A network namespace of one's own. Needs nothing but the standard library, because it is also run as a script."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 0x1


def enter_private_network() -> bool:
    """Move this process, which should have no second thread, into a network namespace that holds loopback only.

    Returns False, and changes nothing, where the kernel or the container forbids it: a child tries first, because some
    kernels let a process leave its network and then forbid it to raise a new one (Ubuntu 24.04 without privileges).
    """
    if subprocess.run([sys.executable, "-I", __file__], capture_output=True).returncode != 0:
        return False
    try:
        _enter()
    except OSError:
        return False
    return True


def _enter() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET) != 0:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


if __name__ == "__main__":
    _enter()
