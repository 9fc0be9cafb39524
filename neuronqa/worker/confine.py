"""How far a zygote and its children are shut off from the machine.

`SEALED`: the zygote is the first process of its own process namespace, without a network. Each child sees every file
read-only but its own folders, has shared memory of its own, and dies with all its descendants in one kernel call. Needs
root, or user namespaces. `BARE` is what is left where containers forbid both: process groups, limits and sweeping up.
In either, a child of root runs as a user that nobody else is, so that limits count for it and it can harm nothing.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path
from typing import Final

from neuronqa.errors import InvariantBroken
from neuronqa.worker import linux, processes

SHARED_MEMORY: Final = Path("/dev/shm")
FIRST_CHILD_UID: Final = 0x7F00_0000
"""Above every range that distributions, systemd or container engines hand out; with a process id added, below 2**31."""


class Confinement(StrEnum):
    """What the machine allows."""

    SEALED = "sealed"
    BARE = "bare"


def best() -> Confinement:
    """Try it out in a process that is thrown away."""
    pid = os.fork()
    if pid == 0:
        os._exit(_rehearse())
    _, status = os.waitpid(pid, 0)
    return Confinement.SEALED if status == 0 else Confinement.BARE


def _rehearse() -> int:
    """Return 0 if a sealed zygote and child can be made here."""
    try:
        enter(Confinement.SEALED)
        pid = os.fork()
        if pid == 0:
            settle(Confinement.SEALED)
            seal(SHARED_MEMORY, (), 1 << 20)
            os._exit(0)
        return os.waitpid(pid, 0)[1]
    except OSError:
        return 1


def enter(confinement: Confinement) -> None:
    """Shut off this process, and its future children more so. One thread only; cannot be undone."""
    if confinement is Confinement.BARE:
        linux.adopt_orphans()
        return
    uid, gid = os.geteuid(), os.getegid()
    spaces = linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWNS
    if uid == 0:
        linux.unshare(spaces)
    else:
        linux.unshare(spaces | linux.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    linux.make_mounts_private()
    linux.raise_loopback()


def settle(confinement: Confinement) -> None:
    """Called by the first process made after :func:`enter`, the zygote."""
    if confinement is Confinement.SEALED:
        linux.mount_proc()
    else:
        linux.adopt_orphans()


def seal(work: Path, writable: tuple[Path, ...], memory: int) -> None:
    """Leave this process and its descendants nothing to write to but `writable` and shared memory of its own.

    `work` is the folder that holds whatever the child reads or writes; it stays visible if it lies in shared memory.
    """
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
    handle = os.open(work, os.O_PATH | os.O_DIRECTORY)
    linux.mount_memory(SHARED_MEMORY, memory)
    if work != SHARED_MEMORY and work.is_relative_to(SHARED_MEMORY):
        work.mkdir(parents=True, exist_ok=True)
        linux.bind(Path(f"/proc/self/fd/{handle}"), work)
    os.close(handle)
    for folder in writable:
        linux.bind(folder, folder)
    linux.set_read_only(Path("/"), recursive=True)
    for folder in (*writable, SHARED_MEMORY):
        linux.set_writable(folder)


def child_uid() -> int | None:
    """The user that this process's children run as, or None for this process's own user."""
    needed = (linux.CAP_CHOWN, linux.CAP_DAC_READ_SEARCH, linux.CAP_KILL, linux.CAP_SETGID, linux.CAP_SETUID)
    if os.geteuid() != 0 or any(not linux.capabilities() >> bit & 1 for bit in needed):
        return None
    uid = FIRST_CHILD_UID + os.getpid()
    return uid if _mapped(uid, "uid_map") and _mapped(uid, "gid_map") else None


def _mapped(identity: int, table: str) -> bool:
    lines = Path(f"/proc/self/{table}").read_text().splitlines()
    ranges = ((int(first), int(count)) for first, _, count in (line.split() for line in lines))
    return any(first <= identity < first + count for first, count in ranges)


def give_up_power(confinement: Confinement, uid: int | None) -> None:
    """Keep of this process's rights only what a case needs."""
    if uid is not None:
        linux.become_user(uid)
    elif os.geteuid() != 0:
        linux.drop_capabilities()
    linux.forbid_new_privileges()
    if confinement is Confinement.BARE:
        linux.forbid_network()


def kill_descendants(confinement: Confinement) -> int:
    """Kill and reap whatever this process's children left running; return how many there were.

    For a process that adopts orphans and has reaped the children it knows.
    """
    if confinement is Confinement.SEALED:
        return _kill_all_but_me()
    _freeze_descendants()
    killed = 0
    while pids := processes.children(os.getpid()):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)  # not yet reaped, so the number is still its own
        for pid in pids:
            os.waitpid(pid, 0)
        killed += len(pids)
    return killed


def _kill_all_but_me() -> int:
    if os.getpid() != 1:
        raise InvariantBroken("only the first process of a namespace may kill all others")
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    killed = 0
    try:
        while os.waitpid(-1, 0)[0]:
            killed += 1
    except ChildProcessError:
        return killed
    return killed


def _freeze_descendants() -> None:
    """Stop them all first: what is stopped cannot fork, and still counts against the limit on processes."""
    family = {os.getpid()}
    while fresh := set(processes.descendants(os.getpid())) - family:
        family |= fresh
        for pid in fresh:
            _stop(pid, family)


def _stop(pid: int, family: set[int]) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # The number may have passed to a stranger before the handle was opened; afterwards it cannot.
        if processes.parent(pid) in family:
            signal.pidfd_send_signal(handle, signal.SIGSTOP)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(handle)
