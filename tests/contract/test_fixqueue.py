"""The fix queue from a sweep's clusters to the sweep that confirms their fixes, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from neuronqa.db import clusters, fixes, queries
from neuronqa.db.fix_store import LateLease
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.cluster import State
from neuronqa.domain.fix import ATTEMPTS, ItemState
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput, EnvironmentFault, InvariantBroken
from neuronqa.fixqueue import bundle as bundles
from neuronqa.fixqueue import cases, prediction
from neuronqa.fixqueue.offers import Refusal
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.service import LEASE_S, FixQueue
from neuronqa.fixqueue.summary import summary
from neuronqa.fixqueue.verdict import Conclusion, Form, Stage, Submission, Target, Verdict
from neuronqa.fixqueue.verifier import verdict_of, verify_next
from neuronqa.triage import actions
from tests.builders import COMPILED, EAGER, failed, vector
from tests.queued import NOT_SHOWN, OPERATORS, OVERLAY, Clock, models, plan, queue_over, swept
from tests.triaged import both, sweep

FIRST, SECOND = "20261201-000000-0000", "20261202-000000-0000"


@pytest.fixture
def plan_id(engine: Engine) -> int:
    return plan(engine)


@pytest.fixture
def queue(engine: Engine, plan_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FixQueue:
    swept(engine, plan_id, FIRST, OPERATORS)
    return queue_over(engine, tmp_path / "home", monkeypatch)


def said(conclusion: Conclusion, reason: Reason | None = None) -> Verdict:
    return Verdict(conclusion=conclusion, stage=Stage.MEMBERS, reason=reason, hint="look", note="hidden case 7")


def verified(queue: FixQueue, verdict: Verdict) -> ItemState:
    def verify(
        submission: Submission, target: Target, base: BuildOrder, policy: Policy, seed: bytes, folder: Path
    ) -> Verdict:
        assert target.members
        assert folder.is_dir()
        assert len(seed) == 16
        del submission, base, policy
        return verdict

    row = verify_next(queue, "verifier", verify)
    assert row is not None
    return row.state


def handed_in(queue: FixQueue) -> str:
    """The operator of the item."""
    grant = queue.claim("ada")
    assert grant is not None
    queue.submit_text(grant.token, Form.OVERLAY, OVERLAY.format(operator=grant.item.operator))
    return grant.item.operator


def test_every_cluster_is_offered_or_refused_by_name(queue: FixQueue, engine: Engine) -> None:
    filled = queue.fill(None, "sweep")
    by_operator = {one.operator: one.refusal for one in filled.considered}
    assert by_operator == {OPERATORS[0]: None, OPERATORS[1]: None, NOT_SHOWN: Refusal.NOT_REPRODUCIBLE}
    assert len(filled.items) == 2
    again = queue.fill(None, "sweep")
    assert again.items == ()
    assert {one.refusal for one in again.considered} == {Refusal.LIVE_ITEM, Refusal.NOT_REPRODUCIBLE}
    with engine.connect() as db:
        ids = {one.cluster.id: str(one.cluster.outcome) for one in clusters.counts(db, queries.sweep(db).id)}
    for id_, title in ids.items():
        if NOT_SHOWN in title:
            actions.mark(engine, str(id_), State.EXPECTED, actor="ada", reason="known")
    assert Refusal.EXPECTED in {one.refusal for one in queue.consider()}


def test_accepted_fixes_form_a_build_and_the_next_sweep_confirms_or_reverts(
    queue: FixQueue, engine: Engine, plan_id: int
) -> None:
    items = queue.fill(None, "sweep").items
    for _ in items:
        handed_in(queue)
        assert verified(queue, said(Conclusion.ACCEPTED)) is ItemState.ACCEPTED
    with engine.connect() as db:
        low_high = prediction.gain_of(db, items)
    landed = queue.land("ada")
    assert landed.items == items
    assert [Path(path).name for path in landed.overlays] == [f"item_{one}.py" for one in items]
    with engine.connect() as db:
        rows = [fixes.item(db, one) for one in items]
        kernels: dict[str, str] = {}
        for one in items:
            kernels |= fixes.journal(db, one)[0].evidence["kernels"]
    assert {row.state for row in rows} == {ItemState.LANDED}
    assert set(kernels) == set(OPERATORS[:2])
    build = vector(kernels=kernels)
    assert {row.landed_build for row in rows} == {build.hash}

    assert queue.settle(None, "sweep") == []
    swept(engine, plan_id, SECOND, [*OPERATORS[1:]], build)
    settled = {one.item: one.state for one in queue.settle(None, "sweep")}
    by_operator = {row.operator: settled[row.id] for row in rows}
    assert by_operator == {OPERATORS[0]: ItemState.CONFIRMED, OPERATORS[1]: ItemState.REVERTED}
    # Models a (1 entry), b (2) and d (8) wait for these two alone.
    assert (low_high.low, low_high.high) == (11, 11)
    confirmed = next(row.id for row in rows if row.operator == OPERATORS[0])
    assert [path.name for path in queue.overlays.iterdir()] == [f"item_{confirmed}.py"]
    assert len(queue.fill(None, "sweep").items) == 1, "the reverted cause is offered anew"
    with engine.connect() as db:
        told = summary(db, queue.clock() + 1)
    assert "## Confirmed" in told
    assert "## Reverted" in told


@pytest.mark.parametrize("kind", [Kind.INFRA_HARNESS, Kind.INFRA_LOST, Kind.INCONCLUSIVE_FLAKY])
def test_a_sweep_that_had_no_answer_confirms_nothing(queue: FixQueue, engine: Engine, plan_id: int, kind: Kind) -> None:
    (item,) = queue.fill(None, "sweep", limit=1).items
    handed_in(queue)
    verified(queue, said(Conclusion.ACCEPTED))
    queue.land("ada")
    with engine.connect() as db:
        kernels = fixes.journal(db, item)[0].evidence["kernels"]
    lost = [one for of in models() for one in both(of, *(failed(v, Check.FALLBACK, kind) for v in (EAGER, COMPILED)))]
    sweep(engine, plan_id, SECOND, lost, vector(kernels=kernels))
    assert queue.settle(None, "sweep") == []
    with engine.connect() as db:
        assert fixes.item(db, item).state is ItemState.LANDED


def test_a_sweep_on_another_build_says_nothing_of_what_landed(queue: FixQueue, engine: Engine, plan_id: int) -> None:
    queue.fill(None, "sweep", limit=1)
    handed_in(queue)
    verified(queue, said(Conclusion.ACCEPTED))
    queue.land("ada")
    swept(engine, plan_id, SECOND, OPERATORS, vector(kernels={OPERATORS[0]: "another"}))
    assert queue.settle(None, "sweep") == []


def test_an_agent_is_shown_some_cases_and_others_are_kept_back(queue: FixQueue, engine: Engine) -> None:
    queue.fill(None, "sweep", limit=1)
    with engine.connect() as db:
        item = fixes.items(db)[0]
        shown, hidden = cases.members(db, item.sweep_id, item.cluster_id)
        target = cases.target(db, item)
    assert shown
    assert hidden
    assert {one.name for one in target.siblings}.isdisjoint({""})
    assert all(item.title in one.outcomes for one in (*target.members, *target.siblings))


def test_an_agent_sees_stage_and_reason_and_never_the_note(queue: FixQueue, engine: Engine) -> None:
    queue.fill(None, "sweep", limit=1)
    handed_in(queue)
    assert verified(queue, said(Conclusion.REJECTED, Reason.BACKWARD_STRIDES)) is ItemState.QUEUED
    assert isinstance(queue.clock, Clock)
    assert queue.claim("ada") is None, "it rests after a rejection"
    queue.clock.now += 3600
    grant = queue.claim("ada")
    assert grant is not None
    text = bundles.text(bundles.bundle(queue, grant.token))
    assert "backward wrong for inputs that are not contiguous" in text
    assert "hidden case 7" not in text
    with engine.connect() as db:
        verdict = verdict_of(fixes.submissions(db, grant.item.id)[0])
    assert verdict is not None
    assert verdict.note == "hidden case 7"
    assert verdict.shown()["hint"] == "look"


def test_a_person_decides_after_enough_attempts_or_abstentions(queue: FixQueue, engine: Engine) -> None:
    items = queue.fill(None, "sweep").items
    assert isinstance(queue.clock, Clock)
    for _ in range(ATTEMPTS):
        queue.clock.now += 100_000
        grant = queue.claim("ada", items[0])
        assert grant is not None
        queue.submit_text(grant.token, Form.OVERLAY, OVERLAY.format(operator=grant.item.operator))
        verified(queue, said(Conclusion.REJECTED, Reason.VALUES))
    for agent in ("ada", "bob"):
        grant = queue.claim(agent, items[1])
        assert grant is not None
        queue.abstain(grant.token, "it sorts")
    with engine.connect() as db:
        assert {one.state for one in fixes.items(db)} == {ItemState.NEEDS_HUMAN}
    with pytest.raises(BadInput):
        queue.decide(items[1], True, "looks right", "eve")
    assert queue.decide(items[0], True, "looks right", "eve") is ItemState.ACCEPTED
    assert queue.decide(items[1], False, "try again", "eve") is ItemState.QUEUED


def test_a_late_submission_is_refused(queue: FixQueue) -> None:
    queue.fill(None, "sweep", limit=1)
    grant = queue.claim("ada")
    assert grant is not None
    assert isinstance(queue.clock, Clock)
    queue.clock.now += LEASE_S + 1
    with pytest.raises(LateLease):
        queue.submit_text(grant.token, Form.OVERLAY, OVERLAY.format(operator=grant.item.operator))


def test_a_submission_that_was_changed_on_disk_is_not_verified(queue: FixQueue, engine: Engine) -> None:
    queue.fill(None, "sweep", limit=1)
    handed_in(queue)
    file = next((queue.home / "submissions").glob("*.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "content": "pass"}))
    assert verified(queue, said(Conclusion.ACCEPTED)) is ItemState.QUEUED
    with engine.connect() as db:
        verdict = verdict_of(fixes.submissions(db, fixes.items(db)[0].id)[0])
    assert verdict is not None
    assert verdict.conclusion is Conclusion.INCONCLUSIVE
    assert "not what was handed in" in verdict.note


@pytest.mark.parametrize("failure", [EnvironmentFault("no device"), InvariantBroken("a sum is off")])
def test_a_verification_that_fails_by_itself_accepts_nothing(queue: FixQueue, failure: Exception) -> None:
    queue.fill(None, "sweep", limit=1)
    handed_in(queue)

    def verify(*_: object) -> Verdict:
        raise failure

    row = verify_next(queue, "verifier", verify)
    assert row is not None
    assert row.state is ItemState.QUEUED
    assert row.rejections == 0


def test_a_verification_that_is_cut_off_is_done_again(queue: FixQueue) -> None:
    queue.fill(None, "sweep", limit=1)
    handed_in(queue)

    def verify(*_: object) -> Verdict:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_next(queue, "verifier", verify)
    assert verified(queue, said(Conclusion.ACCEPTED)) is ItemState.ACCEPTED
