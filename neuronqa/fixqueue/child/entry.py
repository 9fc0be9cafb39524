"""What a child of the sandbox does first: shuts itself in further than a case is, then plays its role."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuronqa.domain.observation import Progress
from neuronqa.fixqueue.child import roles
from neuronqa.fixqueue.sandbox import ENFORCED, Role
from neuronqa.worker import linux, seccomp
from neuronqa.worker.roles import run as run_case


def run(role: str, request: Mapping[str, Any], emit: Callable[[Progress], None]) -> None:
    """Play a role of a case or of :class:`Role`. Nothing that a submission says has been executed before."""
    filtered = seccomp.shut_in()
    match role:
        case Role.LOOK:
            found = {**_state(), "filtered": filtered}
            (Path(request["out"]) / ENFORCED).write_text(json.dumps(found), "utf-8")
        case Role.EXPECT:
            roles.expect(request)
        case Role.APPLY:
            roles.apply(request)
        case _:
            run_case(role, request, emit)


def _state() -> dict[str, Any]:
    status = Path("/proc/self/status").read_text("utf-8").splitlines()
    kept = {key: value.strip() for key, _, value in (line.partition(":") for line in status)}
    return {
        "uid": os.geteuid(),
        "user_space": str(Path("/proc/self/ns/user").readlink()),
        "network_space": str(Path("/proc/self/ns/net").readlink()),
        "seccomp": kept.get("Seccomp", ""),
        "no_new_privileges": kept.get("NoNewPrivs", ""),
        "may_write": linux.capabilities() & ~(1 << linux.CAP_DAC_READ_SEARCH) != 0,
        "limits": [resource.getrlimit(one)[1] for one in _LIMITS],
    }


_LIMITS = (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)
