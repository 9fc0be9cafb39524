"""`python -m neuronqa.worker.zygote CONTROL PARENT`: imports once what every child needs, then forks one child a task.

Two processes. The *keeper* shuts the zygote off from the machine, waits for it, and clears up when the supervisor is
killed. The *zygote* has one thread, no tensors in flight and no device: only then is a fork sound. It serves one child
at a time and reports its end only when nothing that child started is left.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from neuronqa.worker import child, confine, frames, linux, processes
from neuronqa.worker.confine import Confinement

TRUSTED_PREFIXES: Final = ("transformers.models.", "torch.")
"""Modules that may be imported before a fork on request: code that was installed, never what a catalog names."""

_THREADS: Final = Path("/proc/self/task")
_HEARD: Final = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
"""What a keeper waits for: being told to leave, the end of its supervisor, the end of its zygote."""
_DESERTED: Final = 3
"""Exit code of a zygote whose supervisor closed its end without a word."""
_LAST_WORD_S: Final = 2.0
"""How long the news of a supervisor's end may take after its sockets closed."""

ENVIRONMENT: Final = {
    "OMP_NUM_THREADS": "1",  # a parallel region before a fork hangs every child
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # dear in a child; `neuronqa.device.inductor` shares them
    "TOKENIZERS_PARALLELISM": "false",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What one zygote is told when it starts."""

    entry: str = "neuronqa.worker.roles:run"
    """`module:function` that plays a role in the child."""
    preload: tuple[str, ...] = ()
    """Modules every child shares."""
    warm: str = ""
    """`module:function` called once after the imports; empty for none."""
    show_accelerators: bool = False
    """Do children see the CUDA devices of the machine? Only where one may be under test."""
    confinement: Confinement | None = None
    """None: the best the machine allows."""
    work: str = ""
    uid: int | None = None


def main(arguments: list[str]) -> NoReturn:
    """Become the keeper; fork the zygote."""
    control = socket.socket(fileno=int(arguments[0]))
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    linux.die_with_parent(int(arguments[1]), signal.SIGHUP)
    settings = _settings(frames.receive(control)[0])
    confinement = settings.confinement or confine.best()
    confine.enter(confinement)
    pid = os.fork()
    if pid == 0:
        _be_zygote(control, settings, confinement)
    control.close()
    _keep(pid, confinement, settings.work)


def _settings(message: dict[str, Any]) -> Settings:
    chosen = message.pop("confinement")
    preload = tuple(message.pop("preload"))
    return Settings(**message, preload=preload, confinement=Confinement(chosen) if chosen else None)


def order(settings: Settings) -> dict[str, Any]:
    """The first message on the control socket."""
    return asdict(settings)


def _keep(zygote: int, confinement: Confinement, work: str) -> NoReturn:
    """Wait for the zygote's end or the supervisor's; in either case nothing may stay behind.

    Whose end it was is told by the signal, not by who our parent is: while a process with several threads is being
    killed, its children are still its own. Its sockets close before the kernel tells us.
    """
    deserted = False
    while True:
        heard = signal.sigwait(_HEARD)
        deserted |= heard is signal.SIGHUP
        if heard is not signal.SIGCHLD:
            os.kill(zygote, signal.SIGKILL)
        ended, status = os.waitpid(zygote, os.WNOHANG)
        if ended:
            break
    if confinement is Confinement.BARE:
        confine.kill_descendants(confinement)
    code = os.waitstatus_to_exitcode(status)
    if code == _DESERTED and not deserted:
        deserted = signal.sigtimedwait({signal.SIGHUP}, _LAST_WORD_S) is not None
    if deserted:
        shutil.rmtree(work, ignore_errors=True)
    os._exit(code & 0xFF)


def _be_zygote(control: socket.socket, settings: Settings, confinement: Confinement) -> NoReturn:
    try:
        linux.die_with_parent(os.getppid())
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        confine.settle(confinement)
        os._exit(0 if Zygote(control, settings, confinement).serve() else _DESERTED)
    except BaseException:  # noqa: BLE001 - nothing may leave this process but its end
        text = traceback.format_exc()
        sys.stderr.write(text)
        frames.send(control, {"kind": "failed", "error": text[-4000:]})
    os._exit(child.FAULT_CODE)


class Zygote:
    """Serves one supervisor over one socket, one case at a time."""

    def __init__(self, control: socket.socket, settings: Settings, confinement: Confinement) -> None:
        self._control = control
        self._confinement = confinement
        self._around = child.Surroundings(
            zygote=os.getpid(),
            confinement=confinement,
            uid=settings.uid,
            work=settings.work,
            entry=settings.entry,
        )
        self._settings = settings
        self._running: dict[int, tuple[int, int]] = {}
        """Descriptor of a child's process -> its place among those that run together, its number."""

    def serve(self) -> bool:
        """Return when the supervisor has taken its leave (True), or is gone without (False)."""
        began = time.monotonic()
        for module in self._settings.preload:
            importlib.import_module(module)
        if self._settings.warm:
            module, _, function = self._settings.warm.partition(":")
            getattr(importlib.import_module(module), function)()
        _make_fork_safe()
        linux.use_huge_pages()
        seconds = time.monotonic() - began
        self._introduce(seconds)
        while True:
            try:
                message, descriptors = frames.receive(self._control)
            except EOFError:
                return False
            if message["kind"] == "leave":
                return True
            if message["kind"] == "import":
                self._import(message["modules"])
            else:
                self._fork(descriptors, more=message["more"])

    def _introduce(self, seconds: float) -> None:
        """Tell that it is ready; and hand over itself, and the processes it sees."""
        shown = [os.pidfd_open(os.getpid()), os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)]
        frames.send(self._control, {"kind": "ready", "confinement": self._confinement, "seconds": seconds}, shown)
        for descriptor in shown:
            os.close(descriptor)

    def _import(self, modules: list[str]) -> None:
        """Import on request. A module that cannot be imported is the child's news to tell."""
        for module in modules:
            try:
                importlib.import_module(module)
            except Exception:  # noqa: BLE001 - importing a module may raise anything
                traceback.print_exc()
        _make_fork_safe()
        frames.send(self._control, {"kind": "imported"})

    def _fork(self, descriptors: list[int], *, more: bool) -> None:
        """Fork a child, tell its process. Unless `more` are to run beside it, see all of them to their end."""
        task_file, page, output, stack = descriptors
        base = {"anonymous": processes.memory("self", "RssAnon"), "resident": processes.memory("self", "VmRSS")}
        pid = os.fork()
        if pid == 0:
            self._play(task_file, page, output, stack)
        for descriptor in descriptors:
            os.close(descriptor)
        handle = os.pidfd_open(pid)
        frames.send(self._control, {"kind": "forked", "pid": pid, **base}, [handle])
        self._running[handle] = (len(self._running), pid)
        if not more:
            self._see_out()

    def _see_out(self) -> None:
        """Tell of each child's end as it comes; of the last one's when nothing is left that any of them started."""
        poller = select.poll()
        for handle in self._running:
            poller.register(handle, select.POLLIN)
        left = len(self._running)
        while left:
            for handle, _ in poller.poll():
                poller.unregister(handle)
                left -= 1
                self._bury(handle, last=left == 0)
        self._running.clear()

    def _bury(self, handle: int, *, last: bool) -> None:
        at = time.monotonic()
        place, pid = self._running[handle]
        os.close(handle)
        if self._confinement is Confinement.BARE:
            _kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        if last:
            confine.kill_descendants(self._confinement)
        used = {"peak": usage.ru_maxrss * 1024, "cpu_s": usage.ru_utime + usage.ru_stime}
        frames.send(self._control, {"kind": "ended", "place": place, "at": at, "status": status, **used})

    def _play(self, task_file: int, page: int, output: int, stack: int) -> NoReturn:
        task = frames.Task.from_bytes(frames.content(task_file, os.fstat(task_file).st_size))
        child.play(task, frames.StatusPage(page), output, stack, self._around)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)  # its leader is not yet reaped, so the number is still its own
    except (ProcessLookupError, PermissionError):
        return


def _make_fork_safe() -> None:
    """Keep the collector from touching, and so copying, what children share; refuse to fork beside other threads."""
    gc.collect()
    gc.freeze()
    patience = time.monotonic() + 1
    while (threads := len(list(_THREADS.iterdir()))) > 1:
        if time.monotonic() > patience:
            raise RuntimeError(f"the zygote has {threads} threads; forking it would hang its children")
        time.sleep(0.01)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main(sys.argv[1:])
