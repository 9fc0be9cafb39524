"""What a job's result becomes in the database: a table of silences, losses and probes."""

from dataclasses import replace

from neuronqa.domain.case import AttemptKind
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.job import AttemptResult
from neuronqa.domain.observation import Exit, OpUse, Placement, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.sweep.record import lost_records, records
from neuronqa.sweep.schedule import Assignment
from tests.builders import COMPILED, EAGER, LEFT, OF_THE_REFERENCE, checks, failed, job, result, said, workload

JOB = job(workload("little"))
ASSIGNED = Assignment(job=JOB, kinds={t.id: AttemptKind.RECORD for t in JOB.tickets}, expected_s=1.0)


def test_every_attempt_answers_every_check_that_applies_once() -> None:
    for made in records(ASSIGNED, result(JOB), "neuron"):
        asked = checks(made.case.variant)
        assert sorted(f.check for f in made.findings) == sorted(asked)
        assert made.kind is AttemptKind.RECORD
        assert (made.node, made.worker, made.case.workload) == ("n", "w", JOB.workload.hash)


def test_the_references_findings_count_for_each_attempt_made_from_it() -> None:
    broken = result(JOB, {EAGER: failed(EAGER, Check.BUILD, Kind.BUILD_ERROR, "KeyError")})
    for made in records(ASSIGNED, broken, "neuron"):
        assert {f.check: f.outcome for f in made.findings}[Check.BUILD] == Outcome(Kind.BUILD_ERROR, "KeyError")


def test_a_ticket_nobody_reported_on_is_the_harnesss_fault_and_not_absent() -> None:
    full = result(JOB)
    made = records(ASSIGNED, replace(full, attempts=full.attempts[:1]), "neuron")
    assert [str(r.case.variant) for r in made] == ["eager/fp32/train", "compile/fp32/train"]
    silent = {f.check: f.outcome for f in made[1].findings}
    assert set(silent) == set(checks(COMPILED))
    assert {outcome.kind for check, outcome in silent.items() if check not in OF_THE_REFERENCE} == {Kind.INFRA_HARNESS}
    assert all(silent[check].kind.reason == "pass" for check in OF_THE_REFERENCE)


def test_without_a_fit_reference_an_unmade_attempt_is_blocked_by_it() -> None:
    broken = result(JOB, {EAGER: failed(EAGER, Check.REFERENCE, Kind.REFERENCE_NON_FINITE, "loss")})
    made = records(ASSIGNED, replace(broken, attempts=()), "neuron")
    assert len(made) == 2
    for one in made:
        outcomes = {f.check: f.outcome for f in one.findings}
        assert outcomes[Check.REFERENCE] == Outcome(Kind.REFERENCE_NON_FINITE, "loss")
        assert outcomes[Check.RUN] == outcomes[Check.TRAIN] == Outcome(Kind.NOT_RUN_BLOCKED, "reference")


def test_a_check_the_judge_kept_silent_about_is_the_harnesss_fault() -> None:
    full = result(JOB)
    first = replace(full.attempts[0], findings=full.attempts[0].findings[:-1])
    made = records(ASSIGNED, replace(full, attempts=(first, full.attempts[1])), "neuron")
    assert {f.check: f.outcome for f in made[0].findings}[Check.TRAIN] == Outcome(Kind.INFRA_HARNESS, "no report")


def test_a_check_that_is_answered_twice_keeps_its_first_answer() -> None:
    full = result(JOB)
    twice = (*full.attempts[0].findings, said(Check.RUN, Kind.RUN_ERROR, "late"))
    made = records(ASSIGNED, replace(full, attempts=(replace(full.attempts[0], findings=twice),)), "neuron")
    assert [f.outcome.kind for f in made[0].findings if f.check is Check.RUN] == [Kind.RUN_PASS]


def test_a_reference_is_charged_once_for_all_it_serves() -> None:
    made = records(ASSIGNED, result(JOB), "neuron")
    assert [one.cpu_s for one in made] == [LEFT.cpu_s + 0.5, LEFT.cpu_s]
    none = records(ASSIGNED, result(JOB, attempts=()), "neuron")
    assert [one.cpu_s for one in none] == [0.5, 0.0]


def test_a_probe_is_kept_as_a_probe_with_its_own_findings_only() -> None:
    probe = AttemptResult(
        ticket="f" * 32,
        variant=EAGER,
        findings=(said(Check.PARITY, Kind.PARITY_NAN),),
        exit=LEFT,
        probe_of=JOB.tickets[0].id,
        forced_cpu=("aten::mm",),
    )
    full = result(JOB)
    made = records(ASSIGNED, replace(full, attempts=(*full.attempts, probe)), "neuron")
    assert [one.kind for one in made] == [AttemptKind.RECORD, AttemptKind.RECORD, AttemptKind.PROBE]
    assert [f.check for f in made[2].findings] == [Check.PARITY]
    assert made[2].probe_of == JOB.tickets[0].id
    assert made[2].record["forced_cpu"] == ("aten::mm",)


def test_an_attempt_at_a_ticket_nobody_wrote_is_left_out() -> None:
    full = result(JOB)
    forged = replace(full.attempts[0], ticket="0" * 32)
    made = records(ASSIGNED, replace(full, attempts=(forged, *full.attempts)), "neuron")
    assert [one.ticket for one in made] == [t.id for t in JOB.tickets]


def test_a_lost_job_is_lost_on_every_check_of_every_case() -> None:
    made = lost_records(ASSIGNED, "ActorDiedError: node \x1b[31mgone\n", "neuron")
    assert [one.ticket for one in made] == [t.id for t in JOB.tickets]
    for one in made:
        assert {f.check for f in one.findings} == set(checks(one.case.variant))
        assert {str(f.outcome) for f in one.findings} == {"infra:lost(ActorDiedError: node [31mgone)"}


def test_operators_are_kept_with_their_times() -> None:
    op = OpUse(op="aten::mm", dtype="float32", placement=Placement.NATIVE, ns=7)
    full = result(JOB)
    made = records(ASSIGNED, replace(full, attempts=(replace(full.attempts[0], ops=(op,)),)), "neuron")
    assert [(one["op"], one["ns"]) for one in made[0].record["ops"]] == [("aten::mm", 7)]


def test_what_a_child_wrote_last_is_kept_as_strict_json() -> None:
    left = Exit(done=False, progress=Progress.FORWARD, signal="SIGSEGV", stderr_tail="nul\0 lone\ud800 nan")
    full = result(JOB)
    first = replace(full.attempts[0], exit=left)
    made = records(ASSIGNED, replace(full, attempts=(first,)), "neuron")
    assert made[0].record["exit"]["signal"] == "SIGSEGV"
    canonical_json(made[0].record).encode("ascii")
