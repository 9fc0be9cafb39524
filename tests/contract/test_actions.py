"""What people do to clusters, and that it is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from neuronqa.db import clusters
from neuronqa.db.cluster_store import StaleVersion
from neuronqa.db.clusters import ClusterRow
from neuronqa.db.store import Store
from neuronqa.domain.cluster import Action, State
from neuronqa.domain.outcome import Check, Kind
from neuronqa.errors import BadInput
from neuronqa.triage import actions
from tests.builders import EAGER, but, eligible, entries, passed, said, save_plan, workload
from tests.triaged import both, sweep

A, B, C = workload("a"), workload("b"), workload("c")
LANE = "neuron/ideal"
GELU = but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::gelu float32"))
MM = but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::mm float32"))
DAY = 86400.0


@pytest.fixture
def plan(engine: Engine) -> int:
    plan_id = save_plan(Store(engine), [A, B, C], entries([(eligible(w), 2, 10) for w in (A, B, C)]))
    sweep(engine, plan_id, "one", [*both(A, GELU), *both(B, GELU), *both(C, MM)])
    return plan_id


def clusters_of(engine: Engine) -> dict[str, ClusterRow]:
    with engine.connect() as db:
        return {str(one.outcome): one for one in clusters.of_lane(db, LANE)}


def held(engine: Engine) -> dict[int, set[str]]:
    """Cluster -> the workloads it holds in its newest sweep."""
    with engine.connect() as db:
        newest = clusters.newest_triaged(db, LANE)
        assert newest is not None
        return {
            one.cluster.id: {case.family for case in clusters.failing(db, newest, one.cluster.id)}
            for one in clusters.counts(db, newest)
        }


def test_a_merge_is_journalled_on_both_sides_and_learnt(engine: Engine, plan: int) -> None:
    gelu, mm = clusters_of(engine).values()
    actions.merge(engine, str(gelu.id), [mm.key], actor="me", reason="one kernel")
    assert held(engine) == {gelu.id: {"a", "b", "c"}}
    merged = clusters_of(engine)["fallback:no-kernel(aten::mm float32)"]
    assert (merged.state, merged.merged_into) == (State.DUPLICATE, gelu.id)
    sweep(engine, plan, "two", [*both(C, MM), *both(A)])
    assert held(engine) == {gelu.id: {"c"}}
    with engine.connect() as db:
        assert [event.action for event in clusters.journal(db, mm.id)] == [Action.GIVEN_UP, Action.BORN]
        told = clusters.journal(db, gelu.id)
    assert [(event.action, event.actor, event.reason) for event in told if event.actor == "me"] == [
        (Action.MERGED, "me", "one kernel")
    ]


@pytest.mark.usefixtures("plan")
def test_what_was_merged_can_be_split_by_its_keys_again(engine: Engine) -> None:
    gelu, mm = clusters_of(engine).values()
    actions.merge(engine, str(gelu.id), [str(mm.id)], actor="me")
    fresh = actions.split(engine, str(gelu.id), "key", [mm.key], actor="me")
    assert held(engine) == {gelu.id: {"a", "b"}, fresh: {"c"}}


def test_a_split_by_a_part_is_learnt(engine: Engine, plan: int) -> None:
    gelu = clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"]
    fresh = actions.split(engine, str(gelu.id), "family", ["b"], actor="me", reason="another kernel")
    assert held(engine) == {gelu.id: {"a"}, fresh: {"b"}, clusters_of(engine)[str(MM_OUTCOME)].id: {"c"}}
    sweep(engine, plan, "two", [*both(B, GELU), *both(A, GELU)])
    assert held(engine) == {gelu.id: {"a"}, fresh: {"b"}}
    with pytest.raises(BadInput, match="several clusters hold"), engine.connect() as db:
        clusters.cluster(db, gelu.key)


MM_OUTCOME = "fallback:no-kernel(aten::mm float32)"


@pytest.mark.usefixtures("plan")
def test_a_key_moves_with_its_failures(engine: Engine) -> None:
    gelu, mm = clusters_of(engine).values()
    actions.merge(engine, str(gelu.id), [str(mm.id)], actor="me")
    fresh = actions.split(engine, str(gelu.id), "key", [mm.key], actor="me")
    actions.move_key(engine, mm.key, str(fresh), str(gelu.id), actor="me")
    assert held(engine) == {gelu.id: {"a", "b", "c"}}


def test_a_muted_cluster_goes_to_the_end_still_counts_and_comes_back_when_the_waiver_expires(
    engine: Engine, plan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gelu, mm = clusters_of(engine).values()
    actions.mute(engine, gelu.key, owner="me", reason="known", until=time.time() + DAY, actor="me")
    sweep_id = sweep(engine, plan, "two", [*both(A, GELU), *both(B, GELU), *both(C, MM)])
    with engine.connect() as db:
        order = clusters.counts(db, sweep_id)
        kept = clusters.triaged(db, sweep_id)
    assert [(one.cluster.id, one.state, one.entries) for one in order] == [
        (mm.id, State.ONGOING, 2),
        (gelu.id, State.MUTED, 4),
    ]
    assert kept is not None
    assert kept.report is not None
    assert kept.report["gates"]["native"]["failed"] == 6
    later = time.time() + 2 * DAY
    monkeypatch.setattr("neuronqa.triage.settle.time.time", lambda: later)
    sweep(engine, plan, "three", both(A, GELU))
    assert clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"].state is State.ONGOING


@pytest.mark.usefixtures("plan")
def test_a_waiver_can_be_taken_back(engine: Engine) -> None:
    gelu = clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"]
    actions.mute(engine, gelu.key, owner="me", reason="known", until=time.time() + DAY, actor="me")
    actions.unmute(engine, gelu.key, actor="me")
    with pytest.raises(BadInput, match="not muted"):
        actions.unmute(engine, gelu.key, actor="me")
    with engine.connect() as db:
        assert clusters.waivers(db, time.time()) == []


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(
    "refused",
    [
        lambda e, a, _b: actions.mute(e, a, owner="", reason="known", until=time.time() + DAY, actor="me"),
        lambda e, a, _b: actions.mute(e, a, owner="me", reason=" ", until=time.time() + DAY, actor="me"),
        lambda e, a, _b: actions.mute(e, a, owner="me", reason="known", until=time.time() - 1, actor="me"),
        lambda e, a, _b: actions.mute(e, a, owner="me", reason="known", until=time.time() + 400 * DAY, actor="me"),
        lambda e, a, _b: actions.merge(e, a, [a], actor="me"),
        lambda e, a, _b: actions.merge(e, a, ["ck1:none"], actor="me"),
        lambda e, a, _b: actions.split(e, a, "moon", ["x"], actor="me"),
        lambda e, a, _b: actions.split(e, a, "family", [], actor="me"),
        lambda e, a, _b: actions.split(e, a, "key", [a], actor="me"),
        lambda e, a, b: actions.move_key(e, b, a, b, actor="me"),
        lambda e, a, _b: actions.mark(e, a, State.FIXED, actor="me"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    engine: Engine, refused: Callable[[Engine, str, str], None]
) -> None:
    before = clusters_of(engine)
    gelu, mm = before.values()
    with pytest.raises(BadInput):
        refused(engine, gelu.key, mm.key)
    assert clusters_of(engine) == before


@pytest.mark.usefixtures("plan")
def test_who_saw_an_older_version_is_refused(engine: Engine) -> None:
    gelu = clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"]
    actions.assign(engine, gelu.key, "you", actor="me", expected=gelu.version)
    with pytest.raises(StaleVersion):
        actions.assign(engine, gelu.key, "them", actor="me", expected=gelu.version)
    assert clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"].assignee == "you"


def test_a_cluster_that_was_declared_invalid_stays_so_until_it_is_opened_again(engine: Engine, plan: int) -> None:
    gelu = clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"]
    actions.mark(engine, gelu.key, State.INVALID, actor="me")
    sweep(engine, plan, "two", both(A, GELU))
    assert clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"].state is State.INVALID
    actions.mark(engine, gelu.key, State.ONGOING, actor="me")
    assert clusters_of(engine)["fallback:no-kernel(aten::gelu float32)"].state is State.ONGOING
