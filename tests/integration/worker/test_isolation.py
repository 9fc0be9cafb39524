"""What a case does to itself is told exactly, and reaches nobody else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuronqa.domain.observation import Exit, Progress
from neuronqa.domain.policy import Limits
from neuronqa.worker import confine, processes
from neuronqa.worker.confine import Confinement
from neuronqa.worker.folders import WorkFolder
from neuronqa.worker.supervisor import Supervisor
from neuronqa.worker.zygote import Settings

TOKEN = f"NEURONQA_TEST_{uuid.uuid4().hex}"
MEBIBYTE = 1 << 20
CONFINEMENTS = [Confinement.BARE] if confine.best() is Confinement.BARE else [Confinement.BARE, Confinement.SEALED]


class Bench:
    """A supervisor, and what surrounds it."""

    def __init__(self, work: Path, confinement: Confinement) -> None:
        self.work = work
        self.confinement = confinement
        self.supervisor = Supervisor(work, Settings(entry="worker_roles:run", confinement=confinement))
        self.out = work / "out"
        self.guarded = confinement is Confinement.SEALED or confine.child_uid() is not None
        """Is something of the machine between a child and the rest? Else only its good will is."""

    def run(self, role: str, *, deadline_s: float = 20.0, memory_mb: int = 256, ranks: int = 1, **request: Any) -> Exit:
        self.clear()
        return self.supervisor.run(
            role, {**request, "out": str(self.out)}, Limits(deadline_s=deadline_s, memory_mb=memory_mb), ranks
        )

    def clear(self) -> None:
        subprocess.run(["rm", "-rf", self.out], check=True)

    def said(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.out / "said.json").read_text())
        return value

    def assert_nothing_left(self) -> None:
        self.clear()
        assert processes.descendants(self.supervisor.start().pid) == []
        assert [path.name for path in self.work.iterdir()] == []

    def assert_neighbour_unharmed(self) -> None:
        zygote = self.supervisor.start().pid
        exit_ = self.run("healthy")
        assert exit_.done
        assert self.said() == {
            "threads": 1,
            "cwd": [".last-op"],
            "tmp": True,
            "foo": None,
            "recursion": sys.getrecursionlimit(),
            "stdin": "",
            "umask": 0o077,
            "patched": False,
        }
        assert self.supervisor.start().pid == zygote
        self.assert_nothing_left()


@pytest.fixture(scope="module", params=CONFINEMENTS)
def module_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch, WorkFolder() as work:
        patch.syspath_prepend(Path(__file__).parent)
        patch.setenv(TOKEN, "1")
        bench = Bench(work.path, request.param)
        yield bench
        bench.supervisor.close()
    assert processes_with_token() == []


@pytest.fixture
def bench(module_bench: Bench) -> Iterator[Bench]:
    """Every test ends with proof that its case harmed no other and left nothing."""
    zygote = module_bench.supervisor.start().pid
    yield module_bench
    assert module_bench.supervisor.start().pid == zygote
    module_bench.assert_nothing_left()
    module_bench.assert_neighbour_unharmed()
    assert shared_memory_of(confine.child_uid()) == []


def shared_memory_of(uid: int | None) -> list[str]:
    """Blocks and segments of a user that only children are; nothing where they are what everybody else is."""
    blocks = [path.name for path in Path("/dev/shm").iterdir() if path.lstat().st_uid == uid]
    segments = [line for line in Path("/proc/sysvipc/shm").read_text().splitlines() if f" {uid} " in line]
    return blocks + segments


def processes_with_token() -> list[int]:
    """Every process that descends from a zygote of this test run, wherever it was adopted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if f"{TOKEN}=1".encode() in environment:
            found.append(int(folder.name))
    return found


def test_a_healthy_case_is_done(bench: Bench) -> None:
    exit_ = bench.run("healthy")
    assert (exit_.done, exit_.progress, exit_.signal, exit_.code) == (True, Progress.DONE, "", 0)
    assert not any((exit_.timed_out, exit_.memory_exceeded, exit_.stack, exit_.stderr_tail, exit_.fault))
    assert exit_.peak_rss > 0
    assert exit_.cpu_s > 0


@pytest.mark.parametrize(
    ("role", "name", "code"),
    [
        ("segfault", "SIGSEGV", None),
        ("abort", "SIGABRT", None),
        ("exit_0", "", 0),
        ("exit_17", "", 17),
        ("exit_by_python", "", 3),
        ("exec_true", "", 0),
        ("overflow_c_stack", "SIGSEGV", None),
    ],
)
def test_a_death_has_its_exact_signal_or_code(bench: Bench, role: str, name: str, code: int | None) -> None:
    exit_ = bench.run(role)
    assert (exit_.done, exit_.signal, exit_.code, exit_.fault) == (False, name, code, "")
    assert exit_.progress is Progress.FORWARD
    if name:
        assert f"in {role.replace('overflow_c_stack', 'again')}" in exit_.stack


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGBUS, signal.SIGRTMIN + 6])
def test_every_signal_is_named(bench: Bench, number: int) -> None:
    exit_ = bench.run("signal_itself", number=int(number))
    expected = signal.Signals(number).name if number < signal.SIGRTMIN else f"SIG{int(number)}"
    assert (exit_.signal, exit_.code, exit_.timed_out) == (expected, None, False)


def test_the_last_words_are_kept(bench: Bench) -> None:
    assert bench.run("abort").stderr_tail == "about to abort\nFATAL: runtime assertion foo.cc:42\n"


def test_the_stack_holds_no_frame_of_the_harness(bench: Bench) -> None:
    stack = bench.run("segfault").stack
    assert "worker_roles.py" in stack
    assert "zygote.py" not in stack
    assert "runpy" not in stack


def test_an_error_of_the_role_is_a_fault_of_ours_not_a_result(bench: Bench) -> None:
    exit_ = bench.run("raises")
    assert (exit_.done, exit_.fault) == (False, "ValueError: bad config 7")
    assert bench.run("recurse").fault.startswith("RecursionError")


def test_the_running_operator_is_known_after_a_crash_even_if_its_file_is_gone(bench: Bench) -> None:
    exit_ = bench.run("crash_in_operator")
    assert (exit_.signal, exit_.last_op) == ("SIGSEGV", "aten::add.Tensor")


@pytest.mark.parametrize("role", ["hang_in_python", "hang_spinning", "hang_in_c_holding_the_lock", "hang_deaf"])
def test_a_hang_ends_at_its_deadline_with_a_stack(bench: Bench, role: str) -> None:
    exit_ = bench.run(role, deadline_s=0.3)
    assert (exit_.done, exit_.timed_out, exit_.signal, exit_.memory_exceeded) == (False, True, "SIGKILL", False)
    assert f"in {role}" in exit_.stack
    assert exit_.stderr_tail.endswith("it passed its deadline")


def test_a_stopped_case_ends_at_its_deadline(bench: Bench) -> None:
    exit_ = bench.run("stop", deadline_s=0.3)
    assert (exit_.done, exit_.timed_out, exit_.signal) == (False, True, "SIGKILL")


def test_a_case_that_ends_after_its_deadline_by_itself_is_still_late(bench: Bench) -> None:
    exit_ = bench.run("end_late", deadline_s=0.3, seconds=0.45)
    assert (exit_.done, exit_.timed_out) == (True, True)


def test_runaway_memory_is_killed_and_named(bench: Bench) -> None:
    exit_ = bench.run("grow_slowly", memory_mb=128)
    assert (exit_.done, exit_.memory_exceeded, exit_.timed_out, exit_.signal) == (False, True, False, "SIGKILL")
    assert "in grow_slowly" in exit_.stack
    assert 128 * MEBIBYTE <= exit_.peak_rss <= 400 * MEBIBYTE
    assert exit_.stderr_tail.endswith("more memory than its limit")


def test_a_case_that_went_over_its_memory_and_left_before_anyone_looked_is_still_over(bench: Bench) -> None:
    exit_ = bench.run("grow_and_leave", memory_mb=64, mb=120)
    assert exit_.memory_exceeded
    assert exit_.peak_rss >= 64 * MEBIBYTE


def test_a_case_within_its_memory_is_not_over(bench: Bench) -> None:
    exit_ = bench.run("grow_and_leave", memory_mb=128, mb=100)
    assert (exit_.done, exit_.memory_exceeded) == (True, False)
    assert 100 * MEBIBYTE <= exit_.peak_rss <= 200 * MEBIBYTE


def test_a_single_huge_allocation_is_refused_in_the_child(bench: Bench) -> None:
    exit_ = bench.run("ask_for_too_much")
    assert (exit_.done, bench.said()) == (True, {"refused": True})


def test_the_memory_of_descendants_counts(bench: Bench) -> None:
    exit_ = bench.run("grow_in_descendants", memory_mb=200)
    assert (exit_.memory_exceeded, exit_.signal) == (True, "SIGKILL")
    assert exit_.peak_rss >= 200 * MEBIBYTE


def test_memory_that_processes_share_counts_once(bench: Bench) -> None:
    exit_ = bench.run("share_with_descendants", memory_mb=200)
    assert (exit_.done, exit_.memory_exceeded) == (True, False)


def test_files_count_as_memory(bench: Bench) -> None:
    exit_ = bench.run("fill_folder", memory_mb=64)
    assert (exit_.memory_exceeded, exit_.signal) == (True, "SIGKILL")


@pytest.mark.parametrize("role", ["fork_bomb", "fork_bomb_of_sessions"])
def test_a_fork_bomb_is_contained(bench: Bench, role: str) -> None:
    exit_ = bench.run(role, deadline_s=1.0, memory_mb=2048)
    assert (exit_.done, exit_.signal) == (False, "SIGKILL")
    assert exit_.timed_out or "processes" in exit_.stderr_tail


def test_orphans_sessions_and_threads_end_with_the_case(bench: Bench) -> None:
    assert bench.run("leave_orphans").done


def test_a_copy_of_the_child_cannot_speak_for_it(bench: Bench) -> None:
    exit_ = bench.run("copy_itself_and_return")
    assert (exit_.done, exit_.code) == (False, 9)


def test_much_output_is_cut_in_the_middle(bench: Bench) -> None:
    exit_ = bench.run("print_much", mb=100)
    assert exit_.done
    assert exit_.stderr_tail.startswith("FIRST LINE\n")
    assert exit_.stderr_tail.endswith("LAST LINE\n")
    assert "bytes cut" in exit_.stderr_tail
    assert len(exit_.stderr_tail) < 20_000


def test_closed_descriptors_hide_no_result(bench: Bench) -> None:
    assert bench.run("close_descriptors").done
    assert bench.said() == {"closed": True}
    assert bench.run("close_stdout_and_print").done
    assert bench.run("close_everything_and_fail").signal == "SIGSEGV"


def test_changed_surroundings_stay_in_the_child(bench: Bench) -> None:
    assert bench.run("spoil_surroundings").done
    assert bench.said() == {"cwd": "/"}


def test_a_case_may_remove_its_folder(bench: Bench) -> None:
    assert bench.run("remove_own_folder").done


def test_locked_and_deep_folders_are_removed(bench: Bench) -> None:
    assert bench.run("lock_own_folder").done


def test_readers_find_plain_files_only(bench: Bench) -> None:
    assert bench.run("leave_odd_files").done
    assert [path.name for path in bench.out.iterdir()] == ["plain"]


def test_nothing_outside_its_folders_can_be_written(bench: Bench, tmp_path: Path) -> None:
    places = [str(tmp_path), str(bench.work), "/etc"]
    assert bench.run("write_elsewhere", places=places).done
    assert bench.said() == {"refused": places if bench.guarded else ["/etc"]}
    for place in places:
        Path(place, "neuronqa-was-here").unlink(missing_ok=True)


def test_shared_memory_ends_with_the_case(bench: Bench) -> None:
    bench.run("leave_shared_memory")
    said = bench.said()
    segments = {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()}
    assert said["system_v"] >= 0
    assert bench.confinement is Confinement.SEALED or str(said["system_v"]) not in segments
    assert not Path("/dev/shm", said["name"]).exists()


def test_the_network_cannot_be_reached(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert bench.run("reach_out", port=server.getsockname()[1]).done
    assert bench.said()["reached"] is False


def test_limits_hold_in_the_child(bench: Bench) -> None:
    assert bench.run("limits", memory_mb=512).done
    said = bench.said()
    assert said["RLIMIT_CORE"] == 0
    assert 0 < said["RLIMIT_NPROC"] < 100_000
    assert 1024 * MEBIBYTE <= said["RLIMIT_DATA"] <= 1400 * MEBIBYTE
    assert (said["oom"], said["privileges"]) == ("900", "1")
    assert said["capabilities"] in (0, 1 << 2)
    assert said["uid"] == (confine.child_uid() or os.getuid())


@pytest.mark.parametrize("role", ["kill_parent", "stop_parent"])
def test_a_case_cannot_end_the_zygote_or_is_told_apart_when_it_does(module_bench: Bench, role: str) -> None:
    """Where neither a namespace nor a user of its own keeps it from doing so, it fails twice and is blamed."""
    exit_ = module_bench.run(role)
    assert exit_.done is module_bench.guarded
    if not module_bench.guarded:
        assert (exit_.signal, "died under this case" in exit_.stderr_tail) == ("SIGKILL", True)
    module_bench.assert_neighbour_unharmed()


def test_a_dead_zygote_is_replaced(module_bench: Bench) -> None:
    first = module_bench.supervisor.start().pid
    os.kill(first, signal.SIGKILL)
    while module_bench.supervisor.start().pid == first:
        time.sleep(0.01)
    module_bench.assert_neighbour_unharmed()
    assert module_bench.supervisor.start().pid != first


def test_an_innocent_case_is_run_again_when_its_zygote_is_killed(module_bench: Bench, tmp_path: Path) -> None:
    first = module_bench.supervisor.start().pid
    flag = tmp_path / "flag"
    killer = f"sleep 0.5; touch {flag}; kill -9 {first}"
    with subprocess.Popen(["sh", "-c", killer]):
        exit_ = module_bench.run("kill_parent_once", flag=str(flag))
    assert (exit_.done, module_bench.said()) == (True, {"second": True})
    module_bench.assert_neighbour_unharmed()


needs_loopback = pytest.mark.parametrize(
    "module_bench", [one for one in CONFINEMENTS if one is Confinement.SEALED], indirect=True
)


def test_ranks_without_a_network_of_their_own_are_refused(bench: Bench) -> None:
    if bench.confinement is Confinement.SEALED:
        exit_ = bench.run("healthy", ranks=17)
        assert exit_.fault == "17 ranks are more than the 16 that run on one node"
    else:
        exit_ = bench.run("healthy", ranks=2)
        assert exit_.fault.startswith("ranks need a network of their own")
    assert not exit_.done


@needs_loopback
def test_ranks_run_side_by_side_and_meet_over_loopback(bench: Bench) -> None:
    exit_ = bench.run("ranks_meet", ranks=4)
    assert (exit_.done, exit_.rank, exit_.progress) == (True, None, Progress.DONE)
    said = [json.loads((bench.out / f"rank.{rank}" / "said.json").read_text()) for rank in range(4)]
    assert said == [{"rank": 0, "met": [1, 2, 3]}, {"rank": 1}, {"rank": 2}, {"rank": 3}]
    assert exit_.stderr_tail == "\n".join(f"[rank {rank}]\nI am {rank}" for rank in range(4))


@needs_loopback
@pytest.mark.parametrize(
    ("how", "signal_", "code"), [("segfault", "SIGSEGV", None), ("exit_17", "", 17), ("exit_0", "", 0)]
)
def test_a_rank_that_dies_ends_its_case_and_is_named(bench: Bench, how: str, signal_: str, code: int | None) -> None:
    exit_ = bench.run("rank_goes_wrong", ranks=3, wrong=1, how=how)
    assert (exit_.done, exit_.rank, exit_.signal, exit_.code) == (False, 1, signal_, code)
    assert not exit_.timed_out
    assert exit_.stderr_tail.startswith("[rank 1]\nI am 1")
    assert "[rank 2]\n" in exit_.stderr_tail
    assert exit_.stderr_tail.endswith("neuronqa: killed, another rank had ended")


@needs_loopback
def test_of_ranks_that_hang_the_one_that_keeps_the_others_waiting_is_named(bench: Bench) -> None:
    exit_ = bench.run("ranks_hang", ranks=3, wrong=2, deadline_s=1.0)
    assert (exit_.done, exit_.timed_out, exit_.rank) == (False, True, 2)
    assert "rank_hangs" in exit_.stack


@needs_loopback
def test_ranks_share_the_memory_of_all_and_the_biggest_is_named(bench: Bench) -> None:
    exit_ = bench.run("rank_goes_wrong", ranks=2, wrong=1, how="grow_slowly", memory_mb=100)
    assert (exit_.memory_exceeded, exit_.rank) == (True, 1)


@needs_loopback
def test_a_rank_cannot_write_what_another_says(bench: Bench) -> None:
    exit_ = bench.run("rank_writes_elsewhere", ranks=2)
    assert exit_.rank == 1
    assert "Read-only file system" in exit_.fault
