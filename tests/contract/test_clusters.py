"""What triage keeps, held on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlalchemy import Engine, func, select

from neuronqa.db import cluster_store, clusters, queries
from neuronqa.db import cluster_tables as ct
from neuronqa.db.cluster_store import StaleVersion
from neuronqa.db.rows import ControlVerdict
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.cluster import Action, Move, State
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.errors import BadInput
from neuronqa.triage import keys
from neuronqa.triage.settle import triage
from tests.builders import (
    EAGER,
    but,
    eligible,
    entries,
    failed,
    passed,
    record,
    said,
    save_plan,
    workload,
)
from tests.triaged import both, sweep

A, B, C = workload("a"), workload("b"), workload("c")
LANE = "neuron/ideal"
NO_GELU = said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::gelu float32")
NO_MM = said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::mm float32")


@pytest.fixture
def plan(engine: Engine) -> int:
    return save_plan(
        Store(engine), [A, B, C], entries([(eligible(A), 5, 10), (eligible(B), 3, 10), (eligible(C), 1, 1)])
    )


def states(engine: Engine) -> dict[str, State]:
    with engine.connect() as db:
        return {str(one.outcome): one.state for one in clusters.of_lane(db, LANE)}


def test_a_sweep_is_triaged_into_clusters_weighed_by_the_entries_they_block(engine: Engine, plan: int) -> None:
    others = (Outcome(Kind.FALLBACK_NO_KERNEL, "aten::mm float32"),)
    two = but(passed(EAGER), replace(NO_GELU, others=others))
    sweep_id = sweep(engine, plan, "one", [*both(A, two), *both(B, but(passed(EAGER), NO_MM)), *both(C)])
    with engine.connect() as db:
        found = {str(one.cluster.outcome): one for one in clusters.counts(db, sweep_id)}
        mm, gelu = found["fallback:no-kernel(aten::mm float32)"], found["fallback:no-kernel(aten::gelu float32)"]
        assert (mm.entries, mm.sole_entries, mm.downloads, mm.workloads) == (8, 3, 80, 2)
        assert (gelu.entries, gelu.sole_entries) == (5, 0)
        assert [(one.place, one.unlocked_entries) for one in (mm, gelu)] == [(1, 3), (2, 8)]
        group = next(g for g in queries.groups(db, plan) if g.group.workload == A.hash)
        assert [one.cluster.id for one in clusters.blocking(db, sweep_id, group.id)] == [mm.cluster.id, gelu.cluster.id]
        kept = clusters.triaged(db, sweep_id)
    assert kept is not None
    assert kept.clusters == 2
    assert [step["entries"] for step in kept.unlock["curve"]] == [3, 8]


def test_triaging_again_changes_nothing_and_keeps_ids(engine: Engine, plan: int) -> None:
    sweep_id = sweep(engine, plan, "one", [*both(A, but(passed(EAGER), NO_GELU)), *both(B)])
    with engine.connect() as db:
        before = clusters.counts(db, sweep_id)
    triage(engine, "one")
    with engine.connect() as db:
        assert clusters.counts(db, sweep_id) == before
        assert [event.action for event in clusters.journal(db, before[0].cluster.id)] == [Action.BORN]


def test_cases_are_worst_first_and_those_without_a_measure_last(engine: Engine, plan: int) -> None:
    measures = [(A, 3.0), (B, float("inf")), (C, None)]
    records = [
        record(of, EAGER, but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "output", measure=measure)))
        for of, measure in measures
    ]
    sweep_id = sweep(engine, plan, "one", records)
    with engine.connect() as db:
        cluster_id = clusters.counts(db, sweep_id)[0].cluster.id
        assert [one.workload for one in clusters.worst(db, sweep_id, cluster_id)] == [B.hash, A.hash, C.hash]
        page = clusters.failing(db, sweep_id, cluster_id, limit=2)
        rest = clusters.failing(db, sweep_id, cluster_id, after=page[-1].case_id)
    assert [len(page), len(rest)] == [2, 1]
    assert {one.words for one in page} == {"parity said parity:scale"}


def test_two_sweeps_of_one_build_move_nothing_but_new_to_ongoing(engine: Engine, plan: int) -> None:
    falls = but(passed(EAGER), NO_GELU)
    sweep(engine, plan, "one", [*both(A, falls), *both(B, falls), *both(C)])
    sweep(engine, plan, "two", [*both(C), *both(B, falls), *both(A, falls)])
    assert states(engine) == {"fallback:no-kernel(aten::gelu float32)": State.ONGOING}


def test_fixed_needs_every_case_to_pass_on_another_build_and_a_return_is_a_regression(
    engine: Engine, plan: int
) -> None:
    falls, name = but(passed(EAGER), NO_GELU), "fallback:no-kernel(aten::gelu float32)"
    sweep(engine, plan, "one", [*both(A, falls), *both(B, falls)])
    sweep(engine, plan, "two", [*both(A), *both(B)])
    assert states(engine)[name] is State.NEW, "the same build cannot have fixed anything"
    sweep(engine, plan, "three", both(A), build="q")
    assert states(engine)[name] is State.NEW, "one of its cases was not run"
    sweep(engine, plan, "four", [*both(A), *both(B)], build="q")
    assert states(engine)[name] is State.FIXED
    sweep(engine, plan, "five", [*both(A, falls), *both(B)], build="r")
    assert states(engine)[name] is State.REGRESSED
    with engine.connect() as db:
        told = clusters.journal(db, clusters.of_lane(db, LANE)[0].id)
    assert [(event.version, event.after, event.sweep) for event in told] == [
        (3, State.REGRESSED, "five"),
        (2, State.FIXED, "four"),
        (1, State.NEW, "one"),
    ]


def test_what_fails_otherwise_has_shifted_and_what_is_not_reached_is_masked(engine: Engine, plan: int) -> None:
    wrong = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"))
    nan = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_NAN, "aten::mm float32"))
    sweep(engine, plan, "one", [*both(A, wrong), *both(B, NO_FALL)])
    sweep(engine, plan, "two", [*both(A, nan), *both(B, failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV"))], "q")
    now = states(engine)
    assert now["parity:scale(aten::mm float32)"] is State.SHIFTED
    assert now["fallback:no-kernel(aten::gelu float32)"] is State.MASKED


NO_FALL = but(passed(EAGER), NO_GELU)


def test_a_withheld_check_fixes_nothing(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    sweep(engine, plan, "two", both(A), "q", withheld={"native": "control missed"})
    assert states(engine) == {"fallback:no-kernel(aten::gelu float32)": State.CANDIDATE}


def test_a_change_names_the_version_it_saw_and_leaves_a_journal_row(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    move = Move(action=Action.MARKED, actor="me", before=State.CANDIDATE, after=State.INVALID, reason="no bug")
    with engine.begin() as db:
        one = clusters.of_lane(db, LANE)[0]
        assert cluster_store.change(db, one.id, one.version, "ck1", move) == 2
    with pytest.raises(StaleVersion), engine.begin() as db:
        cluster_store.change(db, one.id, one.version, "ck1", move)
    with engine.connect() as db:
        assert [event.version for event in clusters.journal(db, one.id)] == [2, 1]


def test_an_older_sweep_that_is_triaged_late_moves_nothing(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    sweep(engine, plan, "two", both(A), "q")
    before = states(engine)
    triage(engine, "one")
    assert states(engine) == before


def test_clusters_keep_their_ids_when_the_rules_of_keys_change(
    engine: Engine, plan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = sweep(engine, plan, "one", [*both(A, NO_FALL), *both(B, NO_FALL), *both(C, but(passed(EAGER), NO_MM))])
    with engine.connect() as db:
        before = {str(one.outcome): one.id for one in clusters.of_lane(db, LANE)}
    for module in ("keys", "settle", "rekey", "analysis"):
        monkeypatch.setattr(f"neuronqa.triage.{module}.KEY_VERSION", "ck9")
    keys._key.cache_clear()
    triage(engine, "one")
    keys._key.cache_clear()
    with engine.connect() as db:
        after = clusters.of_lane(db, LANE)
        assert {str(one.outcome): one.id for one in after} == before
        assert all(one.key.startswith("ck9:") for one in after)
        assert [one.cluster.id for one in clusters.counts(db, sweep_id)] == sorted(before.values())
        assert clusters.journal(db, after[0].id)[0].action is Action.REKEYED


def test_clusters_of_one_profile_are_not_those_of_another(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    with engine.begin() as db:
        db.execute(ct.cluster.update().values(lane="neuron/other"))
        db.execute(ct.cluster_rule.update().values(lane="neuron/other"))
        db.execute(ct.triage.update().values(lane="neuron/other"))
    sweep(engine, plan, "two", both(A, NO_FALL))
    with engine.connect() as db:
        assert db.execute(select(func.count()).select_from(ct.cluster)).scalar_one() == 2


def test_a_cluster_is_found_by_id_and_by_key_and_by_nothing_else(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    with engine.connect() as db:
        one = clusters.of_lane(db, LANE)[0]
        assert clusters.cluster(db, str(one.id)) == clusters.cluster(db, one.key) == one
        parts = clusters.explanations(db, one.id)[0].parts
        for wrong in ("99", "ck1:none", "", "'; DROP TABLE cluster; --", "9" * 30):
            with pytest.raises(BadInput):
                clusters.cluster(db, wrong)
    assert [part["name"] for part in parts if part["counts"]] == ["nature", "subject"]


def test_planted_faults_grade_the_clustering(engine: Engine, plan: int) -> None:
    faults = [(A, "x", "aten::mm float32"), (B, "x", "aten::mm float32"), (C, "y", "aten::mm float32")]
    records = [
        record(
            of,
            EAGER,
            but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, detail)),
            kind=AttemptKind.CONTROL,
            control=ControlVerdict(name=fault, guards="parity", expected="", judged="", caught=True, fault=fault),
        )
        for of, fault, detail in faults
    ]
    sweep_id = sweep(engine, plan, "one", records)
    with engine.connect() as db:
        kept = clusters.triaged(db, sweep_id)
    assert kept is not None
    assert (kept.grade["items"], kept.grade["faults"], kept.grade["recall"]) == (3, 2, 1.0)
    assert kept.grade["precision"] == pytest.approx(5 / 9)
    assert kept.clusters == 0, "controls are no members"


def test_waivers_hold_until_they_expire_or_are_taken_back(engine: Engine, plan: int) -> None:
    sweep(engine, plan, "one", both(A, NO_FALL))
    now = time.time()
    with engine.begin() as db:
        one = clusters.of_lane(db, LANE)[0]
        cluster_store.waive(db, one.id, "me", "known", now + 100)
        assert [waiver.owner for waiver in clusters.waivers(db, now)] == ["me"]
        assert clusters.waivers(db, now + 101) == []
        cluster_store.revoke(db, one.id)
        assert clusters.waivers(db, now) == []
        assert len(clusters.waivers(db, now, one.id)) == 1
