"""A local Ray that nobody else can talk to: token, no dashboard, no usage statistics, and a network of its own.

Ray 2.60 listens on all interfaces even when told 127.0.0.1, so the token alone would leave ports open. Where the
machine allows it, the whole process tree moves into a private network namespace that holds nothing but loopback.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import shutil
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 0x1
OBJECT_STORE_BYTES: Final = 100 * 2**20

CLOSED: Final = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_LOG_TO_DRIVER_EVENT_LEVEL": "FATAL",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


def enter_private_network() -> bool:
    """Move this process into a network namespace with loopback only. Call before any thread is started.

    Returns False, and changes nothing, where the kernel or the container forbids it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET) != 0:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            return False
        _map_identity(uid, gid)
    _raise_loopback()
    return True


@contextmanager
def local_ray(workers: int) -> Iterator[dict[str, str]]:
    """Start a closed Ray with `workers` slots on this machine, and stop it again. Yields the environment it runs in."""
    token = secrets.token_hex(32)
    environment = {**CLOSED, "RAY_AUTH_TOKEN": token}
    os.environ.update(environment)
    base = Path(tempfile.mkdtemp(prefix="nqa-", dir="/tmp"))
    with _hushed(base / "start.log"):
        import ray

        ray.init(**_arguments(workers, base))
    try:
        yield environment
    finally:
        ray.shutdown()
        shutil.rmtree(base, ignore_errors=True)
        for name in environment:
            os.environ.pop(name, None)


@contextmanager
def _hushed(log: Path) -> Iterator[None]:
    """Send what is written to stderr, Ray's compiled part included, to a file: its start-up warnings are not news."""
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def _arguments(workers: int, base: Path) -> dict[str, Any]:
    return {
        "address": "local",
        "num_cpus": workers,
        "num_gpus": 0,
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
        "_temp_dir": str(base),
        "_node_ip_address": "127.0.0.1",
        "log_to_driver": False,
        "logging_level": "ERROR",
        "configure_logging": False,
    }


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
