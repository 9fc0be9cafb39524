"""The small parts of isolation: marks, captures, folders, readings of /proc."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neuronqa.domain.observation import Progress
from neuronqa.errors import EnvironmentFault, InvariantBroken
from neuronqa.worker import confine, folders, frames, processes
from neuronqa.worker.capture import HEAD, TAIL, HeadAndTail
from neuronqa.worker.confine import Confinement
from neuronqa.worker.folders import WorkFolder
from neuronqa.worker.watched import case_stack, signal_name


def page() -> tuple[frames.StatusPage, frames.StatusPage, int]:
    descriptor = frames.new_page()
    return frames.StatusPage(descriptor), frames.StatusPage(descriptor), descriptor


def test_marks_are_seen_through_the_page() -> None:
    child, supervisor, descriptor = page()
    assert supervisor.read() == frames.Marks(started=0, finished=0, progress=Progress.STARTED, done=False, fault=False)
    child.start()
    child.mark(Progress.BACKWARD)
    assert (supervisor.read().progress, supervisor.read().done) == (Progress.BACKWARD, False)
    child.finish()
    marks = supervisor.read()
    assert (marks.progress, marks.done, marks.fault) == (Progress.DONE, True, False)
    assert 0 < marks.started <= marks.finished <= time.monotonic()
    os.close(descriptor)


@pytest.mark.parametrize("rubbish", [b"\xff" * 64, b"\x7f\xf8" * 32, random.Random(64).randbytes(64)])
def test_a_scribbled_page_is_still_a_value(rubbish: bytes) -> None:
    _, supervisor, descriptor = page()
    os.pwrite(descriptor, rubbish, 0)
    marks = supervisor.read()
    assert marks.progress in Progress
    assert not (marks.done and marks.fault)
    os.close(descriptor)


def test_a_task_round_trips() -> None:
    task = frames.Task(
        role="device", request={"a": [1, {"b": None}]}, scratch="/x", writable=("/x", "/y"), deadline_s=1.5, memory_mb=7
    )
    assert frames.Task.from_bytes(task.to_bytes()) == task


def test_a_short_output_is_kept_whole_and_a_long_one_at_both_ends() -> None:
    short = HeadAndTail()
    short.add(b"a" * HEAD)
    short.add(b"b" * TAIL)
    assert short.text() == "a" * HEAD + "b" * TAIL
    long = HeadAndTail()
    for _ in range(100):
        long.add(b"first " + b"x" * 5000 + b" last")
    assert long.text().startswith("first ")
    assert long.text().endswith(" last")
    assert f"{100 * 5011 - HEAD - TAIL} bytes cut" in long.text()


def test_output_that_is_not_text_is_kept_as_text() -> None:
    kept = HeadAndTail()
    kept.add(b"\xff\x00ok")
    assert kept.text() == "\ufffd\x00ok"


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (9, "SIGKILL"), (40, "SIG40"), (64, "SIGRTMAX")])
def test_signals_have_names(number: int, name: str) -> None:
    assert signal_name(number) == name


def test_only_frames_of_the_harness_are_cut_from_a_stack() -> None:
    ours = Path(folders.__file__).with_name("zygote.py")
    model = '  File "/site-packages/transformers/zygote.py", line 3 in forward\n'
    below = f'  File "{ours}", line 1 in _fork\n  File "<frozen runpy>", line 8 in run\n'
    assert case_stack(f"Fatal Python error: Aborted\n{model}{below}") == f"Fatal Python error: Aborted\n{model}"


DYING = """
import os, sys
from pathlib import Path
from neuronqa.worker.folders import WorkFolder
work = WorkFolder(Path(sys.argv[1]))
(work.path / "file").write_text("x")
print(work.path, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_folder_is_swept_when_its_owner_is_dead_and_not_before(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", DYING, tmp_path], stdout=subprocess.PIPE, text=True, env=environment)
    dead = Path(run.stdout.strip())
    assert (dead / "file").exists()
    with WorkFolder(tmp_path) as living, WorkFolder(tmp_path) as other:
        assert not dead.exists()
        assert living.path.is_dir()
        assert other.path.is_dir()
        assert stat.S_IMODE(living.path.stat().st_mode) == 0o700
    assert [path.name for path in dead.parent.iterdir()] == ["guard"]


def test_a_place_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match=r"no folder to work in.*TMPDIR"):
        WorkFolder(tmp_path / "file")


def test_somebody_elses_folder_of_our_name_is_not_used(tmp_path: Path) -> None:
    (tmp_path / f"neuronqa-{os.geteuid()}").mkdir(mode=0o777)
    (tmp_path / f"neuronqa-{os.geteuid()}").chmod(0o777)
    with pytest.raises(EnvironmentFault, match="not a private folder"):
        WorkFolder(tmp_path)


def test_a_frozen_folder_has_one_digest_and_shows_every_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    digest = folders.freeze(tmp_path)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o400
    assert folders.digest(tmp_path) == digest
    tmp_path.chmod(0o700)
    (tmp_path / "a").chmod(0o600)
    (tmp_path / "a").write_text("3")
    assert folders.digest(tmp_path) != digest
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "c").write_text("1")
    assert folders.digest(tmp_path) != digest


def test_the_size_of_a_folder_counts_entries_and_follows_no_link(tmp_path: Path) -> None:
    assert folders.size(tmp_path) == 0
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/usr")
    assert 100_000 <= folders.size(tmp_path) <= 200_000
    assert folders.size(tmp_path / "gone") == 0


def test_a_process_with_somebody_elses_number_is_not_stopped() -> None:
    """The number of a descendant passed to a stranger between being listed and being stopped."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        confine._stop(stranger.pid, family={1 << 22})
        assert not processes.is_stopped(stranger.pid)
        confine._stop(stranger.pid, family={os.getpid()})
        while not processes.is_stopped(stranger.pid):
            time.sleep(0.001)
        stranger.send_signal(signal.SIGKILL)


def test_nothing_but_the_first_process_of_a_namespace_kills_all_others() -> None:
    with pytest.raises(InvariantBroken):
        confine.kill_descendants(Confinement.SEALED)


def test_a_process_that_is_gone_reads_as_nothing() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert processes.children(gone.pid) == []
    assert (processes.memory(gone.pid, "VmRSS"), processes.parent(gone.pid)) == (0, 0)
    assert not processes.is_stopped(gone.pid)
    family = processes.Family(gone.pid, None)
    assert (family.members(), family.resident([gone.pid]), family.proportional([gone.pid])) == ([], 0, 0)


FAMILY = """
import subprocess, threading
thread = threading.Thread(target=lambda: subprocess.run(["sh", "-c", "sleep 60; true"]))
thread.start()
thread.join()
"""


def test_descendants_are_found_through_threads_and_generations() -> None:
    with subprocess.Popen([sys.executable, "-c", FAMILY]) as parent:
        while len(found := processes.descendants(parent.pid)) < 2:
            time.sleep(0.005)
        assert processes.parent(found[0]) == parent.pid
        assert processes.parent(found[1]) == found[0]
        for pid in (*found, parent.pid):
            os.kill(pid, signal.SIGKILL)
