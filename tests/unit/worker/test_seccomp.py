"""The filter on system calls of a child that runs what a stranger wrote."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable

import pytest

from neuronqa.worker import linux, seccomp


def in_a_filtered_child(act: Callable[[], object]) -> int:
    """0 if `act` worked, else the error's number."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            linux.forbid_new_privileges()
            assert seccomp.shut_in()
            act()
            code = 0
        except OSError as error:
            code = error.errno or 254
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def thread() -> None:
    seen: list[int] = []
    one = threading.Thread(target=seen.append, args=(1,))
    one.start()
    one.join()
    assert seen == [1]


def call(number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(number), 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")


@pytest.mark.parametrize(
    "act",
    [
        lambda: os.execv("/bin/true", ["true"]),
        lambda: socket.socket(socket.AF_INET),
        lambda: socket.socket(socket.AF_INET6),
        lambda: linux.unshare(linux.CLONE_NEWUSER),
        lambda: call(seccomp.forbidden()["ptrace"]),
        lambda: call(seccomp.forbidden()["process_vm_readv"]),
        lambda: call(seccomp.forbidden()["io_uring_setup"]),
    ],
    ids=["execve", "inet", "inet6", "unshare", "ptrace", "other memory", "io_uring"],
)
def test_what_no_operator_needs_is_refused(act: Callable[[], object]) -> None:
    assert in_a_filtered_child(act) == 1  # EPERM


@pytest.mark.parametrize(
    "act", [thread, lambda: socket.socket(socket.AF_UNIX), os.getpid], ids=["thread", "unix", "pid"]
)
def test_what_a_case_needs_is_not(act: Callable[[], object]) -> None:
    assert in_a_filtered_child(act) == 0


def test_every_jump_of_the_program_fits_its_byte_and_ends_inside() -> None:
    program = seccomp.program()
    for at, (code, yes, no, _) in enumerate(program):
        assert yes < 256
        assert no < 256
        assert code == 0x06 or at + 1 + max(yes, no) < len(program)
