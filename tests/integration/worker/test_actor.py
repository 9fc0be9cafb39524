"""A worker answers for every ticket, and leaves nothing when it is killed."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.job import AttemptResult, Job, JobResult, Ticket
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import EnvironmentFault, NodeUnsound
from neuronqa.worker.actor import CaseActor
from neuronqa.worker.exchange import CANARY_FILE
from neuronqa.worker.runner import device_checks
from neuronqa.worker.supervisor import Supervisor
from neuronqa.worker.zygote import Settings

ROLES = Settings(entry="worker_roles:run", preload=("worker_roles",))
EAGER = Variant.parse("eager/fp32/infer")
COMPILE = Variant.parse("compile/fp32/infer")
BF16 = Variant.parse("eager/bf16/infer")


def ticket(name: str, variant: Variant = EAGER, **fault: Any) -> Ticket:
    return Ticket(id=name, variant=variant, order=BuildOrder(device="none", profile="none", fault=fault or None))


def job(*tickets: Ticket, limits: Limits | None = None, deadline_s: float | None = None, **arguments: Any) -> Job:
    spec = ModuleSpec(source="x", source_sha256="0", factory="f", arguments=arguments, deadline_s=deadline_s)
    return Job(
        workload=Workload(spec),
        tickets=tickets,
        thresholds=Thresholds(),
        limits=limits or Limits(deadline_s=20.0, memory_mb=256),
    )


def kinds(attempt: AttemptResult) -> dict[Check, Kind]:
    return {finding.check: finding.outcome.kind for finding in attempt.findings}


@pytest.fixture(scope="module")
def actor() -> Iterator[CaseActor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        actor = CaseActor(settings=ROLES)
        actor.ready()
        yield actor
        actor.close()


def run(actor: CaseActor, work: Job) -> JobResult:
    (result,) = actor.run([work])
    assert result.workload == work.workload.hash
    return result


def test_every_ticket_is_answered_and_each_dtype_has_one_reference(actor: CaseActor) -> None:
    result = run(actor, job(ticket("a"), ticket("b", COMPILE), ticket("c", BF16)))
    assert [attempt.ticket for attempt in result.attempts] == ["a", "b", "c"]
    assert [str(reference.variant) for reference in result.references] == ["eager/fp32/infer", "eager/bf16/infer"]
    for attempt in result.attempts:
        assert set(kinds(attempt)) == set(device_checks(attempt.variant))
        assert kinds(attempt)[Check.RUN] is Kind.RUN_PASS
        assert attempt.exit.done
    assert result.references[0].parameters == 12
    assert result.versions["torch"].startswith("2.")
    assert not result.lost


def test_a_later_job_on_the_same_workload_shares_its_reference(actor: CaseActor) -> None:
    first, second = (run(actor, job(ticket(name), shared=1)) for name in ("a", "b"))
    assert first.references[0].exit.cpu_s > 0
    assert second.references[0].exit.cpu_s == 0
    assert second.references[0].findings == first.references[0].findings
    assert kinds(second.attempts[0])[Check.RUN] is Kind.RUN_PASS


def test_a_crash_has_its_signal_and_spares_its_neighbour(actor: CaseActor) -> None:
    result = run(actor, job(ticket("bad", act="segfault"), ticket("good")))
    bad, good = result.attempts
    assert kinds(bad)[Check.RUN] is Kind.RUN_CRASH
    assert "SIGSEGV" in next(finding.outcome.detail for finding in bad.findings if finding.check is Check.RUN)
    assert kinds(good)[Check.RUN] is Kind.RUN_PASS


def test_probes_go_on_past_each_crashing_operator(actor: CaseActor) -> None:
    result = run(actor, job(ticket("t", ops=["aten::a", "aten::b"]), ticket("next")))
    first, second, third, following = result.attempts
    assert [a.ticket for a in result.attempts] == ["t", "t.1", "t.2", "next"]
    assert [a.probe_of for a in result.attempts] == ["", "t", "t", ""]
    assert (first.exit.last_op, second.exit.last_op) == ("aten::a", "aten::b")
    assert (second.forced_cpu, third.forced_cpu) == (("aten::a",), ("aten::a", "aten::b"))
    assert third.exit.done
    assert following.exit.done


def test_probes_end_at_their_number(actor: CaseActor) -> None:
    limits = Limits(deadline_s=20.0, memory_mb=256, probes=2)
    result = run(actor, job(ticket("t", ops=[f"aten::{n}" for n in range(9)]), limits=limits))
    assert [a.ticket for a in result.attempts] == ["t", "t.1", "t.2"]
    assert result.attempts[-1].exit.signal == "SIGSEGV"


@pytest.mark.parametrize("act", ["segfault", "exit_0", "hang_in_python", "raises"])
def test_what_has_no_operator_to_blame_is_not_probed(actor: CaseActor, act: str) -> None:
    result = run(actor, job(ticket("t", act=act), limits=Limits(deadline_s=0.3, memory_mb=256)))
    assert len(result.attempts) == 1


def test_a_workload_may_have_tighter_limits(actor: CaseActor) -> None:
    (attempt,) = run(actor, job(ticket("t", act="hang_in_python"), deadline_s=0.2)).attempts
    assert attempt.exit.timed_out


def test_without_a_reference_every_device_check_is_blocked(actor: CaseActor) -> None:
    result = run(actor, job(ticket("a"), ticket("b", COMPILE), reference="segfault"))
    assert result.references[0].exit.signal == "SIGSEGV"
    assert any("crash" in str(finding.outcome) for finding in result.references[0].findings)
    for attempt in result.attempts:
        assert kinds(attempt) == dict.fromkeys(device_checks(attempt.variant), Kind.NOT_RUN_BLOCKED)


def test_a_fault_of_the_harness_in_a_child_is_no_verdict(actor: CaseActor) -> None:
    (attempt,) = run(actor, job(ticket("t", act="raises"))).attempts
    assert kinds(attempt) == dict.fromkeys(device_checks(EAGER), Kind.INFRA_HARNESS)
    assert all("bad config 7" in finding.outcome.detail for finding in attempt.findings)


def test_a_device_cannot_change_its_reference_unnoticed(actor: CaseActor) -> None:
    result = run(actor, job(ticket("t", act="tamper"), ticket("next")))
    assert "reference was changed" in result.lost or all(attempt.exit.done for attempt in result.attempts)


def test_a_job_that_cannot_be_worked_on_is_lost_and_the_next_is_not(
    actor: CaseActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("neuronqa.worker.folders.make", _no_space)
        (lost,) = actor.run([job(ticket("t"))])
    assert "No space left" in lost.lost
    assert run(actor, job(ticket("t"))).attempts[0].exit.done


def _no_space(path: Path, _owner: int | None) -> Path:
    raise OSError(28, "No space left on device", str(path))


def test_a_worker_whose_machine_gets_arithmetic_wrong_hands_nothing_out(
    actor: CaseActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Supervisor.run

    def sings_wrong(self: Supervisor, role: str, request: Any, *rest: Any) -> Any:
        if role != "canary":
            return plain(self, role, request, *rest)
        Path(request["out"]).mkdir()
        (Path(request["out"]) / CANARY_FILE).write_text("matmul in float32")
        return None

    with monkeypatch.context() as patch:
        patch.setattr(Supervisor, "run", sings_wrong)
        with pytest.raises(NodeUnsound, match="computes wrongly: matmul in float32") as caught:
            actor.run([job(ticket("t"))])
    assert str(copy.copy(caught.value)) == str(caught.value), "it travels between machines"
    assert run(actor, job(ticket("t"))).attempts[0].exit.done


def test_an_actor_loads_no_torch() -> None:
    code = "import sys, neuronqa.worker.actor; print([m for m in ('torch', 'transformers', 'ray') if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_zygote_that_cannot_import_is_a_clear_error() -> None:
    actor = CaseActor(settings=Settings(preload=("no_such_module",)))
    with pytest.raises(EnvironmentFault, match="No module named 'no_such_module'"):
        actor.ready()
    actor.close()


def test_a_zygote_with_two_threads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with_thread.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    actor = CaseActor(settings=Settings(preload=("with_thread",)))
    with pytest.raises(EnvironmentFault, match="2 threads"):
        actor.ready()
    actor.close()


VICTIM = """
import sys
from neuronqa.worker.actor import CaseActor
from neuronqa.worker.zygote import Settings
from test_actor import ROLES, job, ticket
actor = CaseActor(settings=ROLES)
actor.ready()
print(actor._work.path, flush=True)
actor.run([job(ticket("t", act="leave_orphans_and_hang"))])
"""


def test_nothing_is_left_of_a_worker_that_was_killed() -> None:
    here = Path(__file__).parent
    token = f"NEURONQA_TEST_{os.getpid()}_{time.monotonic_ns()}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path]), token: "1"}
    with subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, text=True, env=environment) as victim:
        assert victim.stdout is not None
        work = Path(victim.stdout.readline().strip())
        eventually(lambda: len(with_token(token)) >= 6)  # itself, judge, keeper, zygote, child, orphan
        assert list(work.iterdir())
        victim.kill()
    eventually(lambda: not with_token(token) and not work.exists(), lambda: left_behind(token, work))


def with_token(token: str) -> list[Path]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{token}=1".encode() in (folder / "environ").read_bytes():
                found.append(folder)
        except OSError:
            continue
    return found


def left_behind(token: str, work: Path) -> str:
    """What a failure should show: command lines and states of processes, and files."""
    found = with_token(token)
    processes = [f"{(one / 'stat').read_text()} {(one / 'cmdline').read_bytes()!r}" for one in found]
    return "\n".join([*processes, *map(str, sorted(work.rglob("*"))), f"folder: {work.exists()}"])


def eventually(holds: Any, describe: Callable[[], str] = lambda: "it never came true") -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, describe()
        time.sleep(0.02)
