"""A local Ray that nobody else can talk to: token, no dashboard, no usage statistics, and a network of its own.

Ray 2.60 listens on all interfaces even when told 127.0.0.1. Everything that can do something asks for the token; three
ports with metrics do not. So where the machine allows it, the sweep first moves into a network that holds nothing but
loopback (:mod:`neuronqa.sweep.private_network`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from neuronqa.errors import EnvironmentFault

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


@contextmanager
def local_ray(workers: int) -> Iterator[dict[str, str]]:
    """Start a closed Ray with `workers` slots on this machine, and stop it again. Yields the environment it runs in.

    Ray reads most of it when it is first imported, so nothing may have imported it before. Raises EnvironmentFault if
    it does not start.
    """
    environment = {**CLOSED, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    base = Path(tempfile.mkdtemp(prefix="nqa-", dir="/tmp"))
    try:
        _start(workers, base)
        yield environment
    finally:
        _stop()
        shutil.rmtree(base, ignore_errors=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _start(workers: int, base: Path) -> None:
    with _hushed(base / "start.log"):
        import ray

        try:
            ray.init(**_arguments(workers, base))
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise EnvironmentFault(f"Ray does not start: {reason}", hint="run `neuronqa doctor`") from error


def _stop() -> None:
    import ray

    ray.shutdown()


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
        # Ray opens this folder, its sockets and the object store, to every user; the one around it stays ours.
        "_temp_dir": str(base / "ray"),
        "_node_ip_address": "127.0.0.1",
        "log_to_driver": False,
        "logging_level": "ERROR",
        "configure_logging": False,
    }
