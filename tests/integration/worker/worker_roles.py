"""Roles that do on purpose what a model may do by accident. Imported by a zygote, played in its children."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing import shared_memory
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from neuronqa.domain.observation import TENSOR_FILE, WEIGHT_FILE, Observation, Progress
from neuronqa.worker import exchange

Request = Mapping[str, Any]
MEBIBYTE = 1 << 20


def run(role: str, request: Request, emit: Callable[[Progress], None]) -> None:
    emit(Progress.FORWARD)
    globals()[role](request)
    emit(Progress.REPORT)


def say(request: Request, **facts: Any) -> None:
    (Path(request["out"]) / "said.json").write_text(json.dumps(facts))


def healthy(request: Request) -> None:
    say(
        request,
        threads=threading.active_count(),
        cwd=[path.name for path in Path().iterdir()],
        tmp=tempfile.gettempdir() == str(Path.cwd()),
        foo=os.environ.get("FOO"),
        recursion=sys.getrecursionlimit(),
        stdin=sys.stdin.read(),
        umask=os.umask(0),
        patched=hasattr(json, "patched"),
    )


def raises(_request: Request) -> None:
    raise ValueError("bad config 7")


def segfault(_request: Request) -> None:
    ctypes.string_at(0)


def abort(_request: Request) -> None:
    print("about to abort", flush=True)
    sys.stderr.write("FATAL: runtime assertion foo.cc:42\n")
    os.abort()


def exit_0(_request: Request) -> None:
    os._exit(0)


def exit_17(_request: Request) -> None:
    os._exit(17)


def exit_by_python(_request: Request) -> None:
    sys.exit(3)


def exec_true(_request: Request) -> None:
    os.execv("/bin/true", ["true"])


def signal_itself(request: Request) -> None:
    number = request["number"]
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(60)


def overflow_c_stack(_request: Request) -> None:
    libc = ctypes.CDLL(None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    sys.setrecursionlimit(10**9)
    numbers = (ctypes.c_int * 2)(2, 1)

    def again(_a: int, _b: int) -> int:
        libc.qsort(numbers, 2, 4, compare(again))
        return 0

    again(0, 0)


def recurse(request: Request) -> None:
    recurse(request)


def grow_slowly(_request: Request) -> None:
    kept = []
    while True:
        kept.append(bytearray(16 * MEBIBYTE))
        time.sleep(0.01)


def grow_and_leave(request: Request) -> None:
    len(b"x" * (request["mb"] * MEBIBYTE))


def ask_for_too_much(request: Request) -> None:
    try:
        bytearray(1 << 40)
    except MemoryError:
        say(request, refused=True)


def grow_in_descendants(_request: Request) -> None:
    for _ in range(4):
        if os.fork() == 0:
            kept = bytearray(80 * MEBIBYTE)
            time.sleep(60)
            kept.clear()
    time.sleep(60)


def share_with_descendants(request: Request) -> None:
    kept = bytearray(100 * MEBIBYTE)
    for _ in range(6):
        if os.fork() == 0:
            time.sleep(0.5)
            os._exit(0)
    time.sleep(0.4)
    say(request, kept=len(kept))


def fill_folder(_request: Request) -> None:
    for number in range(10_000):
        Path(f"{number}").write_bytes(b"x" * MEBIBYTE)
        time.sleep(0.001)


def hang_in_python(_request: Request) -> None:
    while True:
        time.sleep(0.1)


def hang_spinning(_request: Request) -> None:
    while True:
        pass


def hang_in_c_holding_the_lock(_request: Request) -> None:
    ctypes.PyDLL(None).sleep(3600)


def hang_deaf(_request: Request) -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        time.sleep(1)


def stop(_request: Request) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def end_late(request: Request) -> None:
    time.sleep(request["seconds"])
    say(request, late=True)


def leave_orphans(_request: Request) -> None:
    subprocess.Popen(["sleep", "7777"])
    subprocess.Popen(["setsid", "sleep", "7778"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 2048)
            time.sleep(7779)
        os._exit(0)
    threading.Thread(target=time.sleep, args=(7780,)).start()


def copy_itself_and_return(_request: Request) -> None:
    if os.fork():
        time.sleep(0.3)
        os._exit(9)


def fork_bomb(_request: Request) -> None:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def fork_bomb_of_sessions(_request: Request) -> None:
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
        except OSError:
            time.sleep(0.01)


def print_much(request: Request) -> None:
    print("FIRST LINE", flush=True)
    for _ in range(request["mb"] * 16):
        os.write(1, b"x" * 65535 + b"\n")
    print("LAST LINE", flush=True)


def close_descriptors(request: Request) -> None:
    os.closerange(0, 256)
    say(request, closed=True)


def close_everything_and_fail(_request: Request) -> None:
    os.closerange(0, 1 << 20)
    ctypes.string_at(0)


def close_stdout_and_print(request: Request) -> None:
    sys.stdout.close()
    os.close(2)
    say(request, closed=True)


def spoil_surroundings(request: Request) -> None:
    os.chdir("/")
    os.umask(0)
    os.environ["FOO"] = "bar"
    sys.setrecursionlimit(77)
    json.patched = True  # type: ignore[attr-defined]
    faulthandler.disable()
    faulthandler.cancel_dump_traceback_later()
    say(request, cwd=str(Path.cwd()))


def remove_own_folder(request: Request) -> None:
    subprocess.run(["rm", "-rf", tempfile.gettempdir()], stderr=subprocess.DEVNULL)
    say(request, left=Path(request["last_op_file"]).exists())


def lock_own_folder(_request: Request) -> None:
    deep = Path("locked")
    for name in ("a", "b"):
        deep = deep / name
        deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    Path("locked/a").chmod(0)
    Path("locked").chmod(0)
    for _ in range(1500):
        Path("d").mkdir()
        os.chdir("d")


def leave_odd_files(request: Request) -> None:
    out = Path(request["out"])
    (out / "link").symlink_to("/etc/passwd")
    (out / "folder").symlink_to("/etc")
    os.mkfifo(out / "pipe")
    (out / "plain").write_text("kept")
    (out / "first").write_text("two names")
    os.link(out / "first", out / "second")


def write_elsewhere(request: Request) -> None:
    refused = []
    for place in request["places"]:
        try:
            Path(place, "neuronqa-was-here").write_text("x")
        except OSError:
            refused.append(place)
    say(request, refused=refused)


def leave_shared_memory(request: Request) -> None:
    block = shared_memory.SharedMemory(create=True, size=4096)
    libc = ctypes.CDLL(None)
    say(request, name=block.name, system_v=libc.shmget(0x6E71, 4096, 0o1600))
    os._exit(0)


def reach_out(request: Request) -> None:
    try:
        with socket.create_connection(("127.0.0.1", request["port"]), timeout=2):
            say(request, reached=True)
    except OSError as error:
        say(request, reached=False, error=type(error).__name__)


def kill_parent(request: Request) -> None:
    harm_parent(request, signal.SIGKILL)


def stop_parent(request: Request) -> None:
    harm_parent(request, signal.SIGSTOP)


def harm_parent(request: Request, number: signal.Signals) -> None:
    try:
        os.kill(os.getppid(), number)
        refused = False
    except PermissionError:
        refused = True
    time.sleep(0.2)
    say(request, refused=refused)


def kill_parent_once(request: Request) -> None:
    """Innocent: somebody else kills the zygote while this runs, the first time."""
    flag = Path(request["flag"])
    if not flag.exists():
        say(request, waiting=True)
        time.sleep(30)
    say(request, second=True)


def crash_in_operator(request: Request) -> None:
    with Path(request["last_op_file"]).open("r+b") as file:
        file.truncate(128)
        mark = mmap.mmap(file.fileno(), 128)
    Path(request["last_op_file"]).unlink()
    mark[: len(b"aten::add.Tensor\0")] = b"aten::add.Tensor\0"
    ctypes.string_at(0)


def limits(request: Request) -> None:
    import resource

    names = ("RLIMIT_CORE", "RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_FSIZE")
    with Path("/proc/self/status").open() as status:
        facts = dict(line.split(":", 1) for line in status)
    say(
        request,
        **{name: resource.getrlimit(getattr(resource, name))[0] for name in names},
        oom=Path("/proc/self/oom_score_adj").read_text().strip(),
        privileges=facts["NoNewPrivs"].strip(),
        capabilities=int(facts["CapEff"], 16),
        uid=os.getuid(),
        home=str(Path.home()),
    )


def reference(request: Request) -> None:
    """As told by the arguments of the workload: `reference` names what happens while it is made."""
    act(request, request["workload"]["spec"]["arguments"].get("reference", ""), ())
    write(request, "reference")


def device(request: Request) -> None:
    """As told by the fault in the order: crash in the first operator that is not forced to the CPU, or `act`."""
    fault = request["order"]["fault"] or {}
    act(request, fault.get("act", ""), [op for op in fault.get("ops", ()) if op not in request["order"]["forced_cpu"]])
    write(request, "device")


def act(request: Request, what: str, ops: list[str] | tuple[str, ...]) -> None:
    if what == "tamper":
        tamper(Path(request["reference"]))
    elif what:
        globals()[what]({**request, "seconds": 0.0})
    elif ops:
        Path(request["last_op_file"]).write_bytes(ops[0].encode() + b"\0")
        ctypes.string_at(0)


def tamper(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
        (folder / "tensors.safetensors").chmod(0o600)
        (folder / "tensors.safetensors").write_bytes(b"")


def write(request: Request, role: str) -> None:
    arrays = {"output/0": np.arange(4.0, dtype=np.float32), "loss": np.array([2.0], dtype=np.float32)}
    if role == "reference":
        sides = {f"{side}/{name}": array for side in ("same", "oracle") for name, array in arrays.items()}
        arrays = sides | {f"noise/{name}": np.full_like(array, 1e-7) for name, array in arrays.items()}
    folder = Path(request["out"])
    exchange.write_arrays(folder / TENSOR_FILE, arrays)
    exchange.write_arrays(folder / WEIGHT_FILE, {"param/w": np.ones(3, dtype=np.float32)})
    dtypes = dict.fromkeys(arrays, "float32")
    exchange.write_observation(folder, Observation(role=role, reached=Progress.DONE, parameters=12, dtypes=dtypes))


def leave_orphans_and_hang(request: Request) -> None:
    leave_orphans(request)
    hang_in_python(request)


def nothing(_request: Request) -> None:
    return


def note_time(request: Request) -> None:
    (Path(request["out"]) / "time").write_text(str(time.monotonic()))


def note_time_and_crash(request: Request) -> None:
    note_time(request)
    ctypes.string_at(0)


def hold(_request: Request) -> None:
    time.sleep(0.35)


def ranks_meet(request: Request) -> None:
    """Rank 0 listens on loopback and leaves its port where all can read it; the others send it their numbers."""
    rank, ranks, store = request["rank"], request["ranks"], Path(request["store"])
    print(f"I am {rank}")
    if rank > 0:
        with socket.create_connection(("127.0.0.1", int(_awaited(store)))) as to:
            to.sendall(bytes([rank]))
        return say(request, rank=rank)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        part = store.with_suffix(".part")
        part.write_text(str(listening.getsockname()[1]))
        part.rename(store)
        met = []
        for _ in range(ranks - 1):
            with listening.accept()[0] as caller:
                met += list(caller.recv(1))
    return say(request, rank=rank, met=sorted(met))


def _awaited(path: Path) -> str:
    while not path.exists():
        time.sleep(0.01)
    return path.read_text()


def rank_goes_wrong(request: Request) -> None:
    """One rank does what it is told to, the others wait for it in vain."""
    print(f"I am {request['rank']}", flush=True)
    if request["rank"] == request["wrong"]:
        globals()[request["how"]](request)
    else:
        time.sleep(60)


def rank_hangs(_request: Request) -> None:
    """Busy with something of its own while the others wait in a collective."""
    while True:
        pass


def ranks_hang(request: Request) -> None:
    """All hang, one of them for its own reasons."""
    if request["rank"] == request["wrong"]:
        rank_hangs(request)
    code = _waits_for_others.__code__.replace(co_filename="/x/torch/distributed/distributed_c10d.py")
    FunctionType(code, globals())()


def _waits_for_others() -> None:
    time.sleep(60)


def rank_writes_elsewhere(request: Request) -> None:
    """Into the folder of another rank."""
    if request["rank"] == 1:
        (Path(request["out"]).parent / "rank.0" / "forged").write_text("x")
