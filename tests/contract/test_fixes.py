"""The fix queue on SQLite and on PostgreSQL: nothing is leased twice, nothing late is taken, everything is told."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, select

from neuronqa.db import cluster_store, fix_store, fixes
from neuronqa.db import fix_tables as ft
from neuronqa.db.fix_store import Grant, LateLease, Offer, Overtaken, Verdict
from neuronqa.db.store import Store
from neuronqa.domain.cluster import Action, Move, State
from neuronqa.domain.fix import ATTEMPTS, FOLLOWS, Ending, ItemState, Judgement, wait_s
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.errors import BadInput
from tests.builders import eligible, entries, save_plan, workload
from tests.triaged import both, sweep

LANE = "neuron/ideal"
HOUR = 3600.0
REJECTED = Verdict(judgement=Judgement.REJECTED, stage="members", reason="still-fails", note="case 7", measured={})
ACCEPTED = Verdict(judgement=Judgement.ACCEPTED, stage="", reason="", note="", measured={"fuzzed": 40})


@pytest.fixture
def sweep_id(engine: Engine) -> int:
    a = workload("a")
    plan = save_plan(Store(engine), [a], entries([(eligible(a), 5, 10)]))
    return sweep(engine, plan, "20261201-000000-0000", both(a))


def offered(engine: Engine, sweep_id: int, number: int) -> int:
    found = Outcome(Kind.FALLBACK_NO_KERNEL, f"aten::op{number} float32")
    move = Move(action=Action.BORN, actor="triage", before=None, after=State.NEW, sweep_id=sweep_id)
    with engine.begin() as db:
        cluster = cluster_store.create(db, LANE, f"ck1:{number:012x}", "ck1", Check.FALLBACK, found, sweep_id, move)
        item = fix_store.offer(db, offer(cluster, sweep_id, number), 0.0, "sweep")
    assert item is not None
    return item


def offer(cluster: int, sweep_id: int, number: int) -> Offer:
    return Offer(
        cluster_id=cluster,
        sweep_id=sweep_id,
        lane=LANE,
        operator=f"aten::op{number}",
        title=f"fallback:no-kernel(aten::op{number} float32)",
        place=number,
        entries=10,
        downloads=100,
    )


def claimed(engine: Engine, agent: str = "ada", now: float = 1.0) -> Grant:
    with engine.begin() as db:
        grant = fix_store.claim(db, agent, now, HOUR)
    assert grant is not None
    return grant


def handed_in(engine: Engine, now: float = 2.0) -> tuple[int, int]:
    """Item and submission."""
    grant = claimed(engine, now=now)
    with engine.begin() as db:
        return grant.item.id, fix_store.submit(db, grant.token, "overlay", "0" * 64, "folder", now + 1)


def judged(engine: Engine, verdict: Verdict, now: float) -> ItemState:
    with engine.begin() as db:
        taken = fix_store.take(db, now, "verifier")
    with engine.begin() as db:
        return fix_store.judge(db, taken.id, verdict, now, "verifier")


def test_a_cluster_has_one_live_item(engine: Engine, sweep_id: int) -> None:
    item = offered(engine, sweep_id, 1)
    with engine.begin() as db:
        cluster = fixes.item(db, item).cluster_id
        assert fix_store.offer(db, offer(cluster, sweep_id, 1), 1.0, "sweep") is None
        fix_store.cancel(db, item, "no longer wanted", 2.0, "grace")
        assert fix_store.offer(db, offer(cluster, sweep_id, 1), 3.0, "sweep") not in (None, item)


def test_items_are_claimed_in_the_order_of_fixes_and_once(engine: Engine, sweep_id: int) -> None:
    for number in (3, 1, 2):
        offered(engine, sweep_id, number)
    assert [claimed(engine).item.place for _ in range(3)] == [1, 2, 3]
    with engine.begin() as db:
        assert fix_store.claim(db, "ada", 1.0, HOUR) is None


def test_two_hundred_claims_of_two_agents_lease_nothing_twice(engine: Engine, sweep_id: int) -> None:
    made = [offered(engine, sweep_id, number) for number in range(40)]
    together = threading.Barrier(8)

    def claims(agent: str) -> list[int]:
        together.wait()
        found = []
        for _ in range(25):
            with engine.begin() as db:
                grant = fix_store.claim(db, agent, 1.0, HOUR)
            found += [grant.item.id] if grant else []
        return found

    with ThreadPoolExecutor(8) as pool:
        got = Counter(item for found in pool.map(claims, ["ada", "grace"] * 4) for item in found)
    assert got == Counter(made)
    with engine.connect() as db:
        assert len(db.execute(select(ft.fix_lease)).all()) == len(made)


def test_an_expired_lease_comes_back_and_what_it_brings_late_is_refused(engine: Engine, sweep_id: int) -> None:
    item = offered(engine, sweep_id, 1)
    late = claimed(engine, now=0.0)
    again = claimed(engine, "grace", now=HOUR + 1)
    assert again.item.id == item
    for act in (
        lambda db: fix_store.submit(db, late.token, "overlay", "0" * 64, "x", HOUR + 2),
        lambda db: fix_store.heartbeat(db, late.token, HOUR + 2, HOUR),
        lambda db: fix_store.give_back(db, late.token, Ending.RELEASED, "", HOUR + 2),
    ):
        with pytest.raises(LateLease, match="over"), engine.begin() as db:
            act(db)
    with engine.begin() as db:
        assert fixes.item(db, item).state is ItemState.LEASED
        assert fixes.submissions(db, item) == []
        fix_store.submit(db, again.token, "overlay", "0" * 64, "x", HOUR + 3)


def test_a_heartbeat_keeps_a_lease(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    grant = claimed(engine, now=0.0)
    with engine.begin() as db:
        assert fix_store.heartbeat(db, grant.token, HOUR - 1, HOUR) == 2 * HOUR - 1
        assert fix_store.claim(db, "grace", HOUR + 1, HOUR) is None


@pytest.mark.usefixtures("sweep_id")
def test_an_unknown_token_is_no_lease(engine: Engine) -> None:
    with pytest.raises(LateLease, match="no lease has this token"), engine.begin() as db:
        fix_store.heartbeat(db, "guess", 1.0, HOUR)


def test_tokens_are_not_kept(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    grant = claimed(engine)
    with engine.connect() as db:
        (row,) = db.execute(select(ft.fix_lease)).all()
    assert grant.token not in str(row)


def test_a_rejected_item_rests_longer_each_time_and_then_a_person_looks(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    now = 10.0
    for number in range(1, ATTEMPTS):
        item, _ = handed_in(engine, now)
        assert judged(engine, REJECTED, now + 2) is ItemState.QUEUED
        with engine.begin() as db:
            assert fix_store.claim(db, "ada", now + 1 + wait_s(number), HOUR) is None
        now += 2 + wait_s(number)
    item, _ = handed_in(engine, now)
    assert judged(engine, REJECTED, now + 2) is ItemState.NEEDS_HUMAN
    with engine.connect() as db:
        assert len(fixes.submissions(db, item)) == ATTEMPTS


def test_an_inconclusive_verdict_counts_as_no_rejection(engine: Engine, sweep_id: int) -> None:
    item, _ = (offered(engine, sweep_id, 1), handed_in(engine))
    unsure = Verdict(judgement=Judgement.INCONCLUSIVE, stage="loads", reason="not-enforced", note="", measured={})
    assert judged(engine, unsure, 5.0) is ItemState.QUEUED
    with engine.connect() as db:
        assert fixes.item(db, item).rejections == 0


def test_the_seed_of_hidden_cases_is_drawn_after_submission(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    item, _ = handed_in(engine)
    with engine.begin() as db:
        assert fixes.submissions(db, item)[0].seed is None
        assert len(fix_store.take(db, 4.0, "verifier").seed) == 32


def test_a_submission_is_judged_once(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    _, submission = handed_in(engine)
    assert judged(engine, ACCEPTED, 5.0) is ItemState.ACCEPTED
    with pytest.raises(Overtaken), engine.begin() as db:
        fix_store.judge(db, submission, REJECTED, 6.0, "verifier")


def test_a_verification_that_was_cut_off_is_taken_up_again(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    item, _ = handed_in(engine)
    with engine.begin() as db:
        fix_store.take(db, 4.0, "verifier")
    with engine.begin() as db:
        assert fix_store.resume(db, 5.0, "verifier") == [item]
    assert judged(engine, ACCEPTED, 6.0) is ItemState.ACCEPTED


def test_the_journal_tells_every_step_and_only_grows(engine: Engine, sweep_id: int) -> None:
    offered(engine, sweep_id, 1)
    item, _ = handed_in(engine)
    judged(engine, ACCEPTED, 5.0)
    with engine.connect() as db:
        told = [(row.version, row.before, row.after) for row in fixes.journal(db, item)][::-1]
        assert fixes.item(db, item).version == len(told)
    assert told == [
        (1, None, "queued"),
        (2, "queued", "leased"),
        (3, "leased", "submitted"),
        (4, "submitted", "verifying"),
        (5, "verifying", "accepted"),
    ]


@pytest.mark.parametrize("target", sorted(set(ItemState) - FOLLOWS[ItemState.QUEUED]))
def test_what_may_not_follow_is_refused(engine: Engine, sweep_id: int, target: ItemState) -> None:
    item = offered(engine, sweep_id, 1)
    with pytest.raises(BadInput, match="cannot become"), engine.begin() as db:
        fix_store.move(db, fixes.item(db, item), target, 1.0, "ada", "", {})


def test_only_what_has_ended_lets_a_cluster_be_offered_again() -> None:
    assert {state for state in ItemState if not state.live} == {state for state in ItemState if not FOLLOWS[state]}
