"""What the store promises, held on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import IntegrityError

from neuronqa.db import planning, queries, schema
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.db.occurrences import occurrences
from neuronqa.db.patience import patiently
from neuronqa.db.rows import ControlVerdict
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind, Case, Variant
from neuronqa.domain.catalog import Entry, ListingStatus
from neuronqa.domain.finding import Finding
from neuronqa.domain.ladder import Evidence, entry_state
from neuronqa.domain.outcome import Check, Kind, Outcome, Standing
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.workload import HfSpec, Workload
from neuronqa.errors import BadInput, DatabaseAway, EnvironmentFault
from tests.builders import (
    COMPILED,
    EAGER,
    QUICK,
    but,
    checks,
    eligible,
    entries,
    failed,
    open_sweep,
    passed,
    record,
    said,
    save_plan,
    summary,
    workload,
)
from tests.contract.conftest import Server

A, B, C = workload("a"), workload("b"), workload("c")
HOSTILE = (
    "",
    "plain",
    "nul\0byte",
    "\0",
    "lone \ud800 and \udfff",
    "back\\slash \\0000 \\ud800",
    "é 漢字 \U0001f600",
    "quote' \"; DROP TABLE attempt; --",
    "\u202eright to left",
    "line\r\nbreak\ttab",
    "%s %(x)s :name ?",
    "x" * 100_000,
)
BIG = 2**63 - 1


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine)


@pytest.fixture
def sweep_id(store: Store) -> int:
    plan_id = save_plan(store, [A, B, C], entries([(eligible(w), 2, 10) for w in (A, B, C)]))
    return open_sweep(store, plan_id)


def count(engine: Engine, table: Any) -> int:
    with engine.connect() as db:
        return int(db.execute(select(func.count()).select_from(table)).scalar_one())


def found(engine: Engine, sweep_id: int, of: Workload, variant: Variant = EAGER) -> dict[Check, Outcome]:
    with engine.connect() as db:
        of_it = queries.findings(db, sweep_id).get(of.hash, {})
    return {check: outcome for (v, check), outcome in of_it.items() if v == variant}


# --- schema


def test_the_migrations_and_the_tables_in_code_describe_the_same_schema(engine: Engine) -> None:
    with engine.connect() as connection:
        compared = {"compare_type": True, "compare_server_default": True, "include_name": apart_from_full_text}
        context = MigrationContext.configure(connection, opts=compared)
        assert compare_metadata(context, schema.metadata) == []


def apart_from_full_text(name: str | None, _kind: str, _parents: Any) -> bool:
    """The full-text index is each database's own and made by the migration alone."""
    return not (name or "").startswith(("message_words", "ix_message_words"))


# --- plans


def test_a_plan_keeps_every_entry_and_the_weight_of_every_group(store: Store) -> None:
    gated = PlanGroup(listing=ListingStatus.GATED.outcome("404"))
    plan_id = save_plan(store, [A, B], entries([(eligible(A), 3, 7), (eligible(B, "k"), 2, 100), (gated, 4, 1)]))
    with store.engine.connect() as db:
        groups = queries.groups(db, plan_id)
        downloads = db.execute(select(t.plan.c.downloads).where(t.plan.c.id == plan_id)).scalar_one()
    assert [(g.entries, g.downloads) for g in groups] == [(3, 21), (2, 200), (4, 4)]
    assert [g.group for g in groups] == [eligible(A), eligible(B, "k"), gated]
    assert count(store.engine, t.entry) == 9
    assert downloads == 225


def test_a_plan_is_found_again_by_its_key_and_by_no_other(store: Store) -> None:
    assert store.known_plan("p" * 32) is None
    plan_id = save_plan(store, [A], entries([(eligible(A), 1, 1)]))
    assert store.known_plan("p" * 32) == plan_id
    assert store.known_plan("q" * 32) is None


def test_a_plan_that_breaks_half_way_leaves_nothing_behind(store: Store) -> None:
    def broken() -> Any:
        yield from entries([(eligible(A), 3, 1)])
        raise OSError("the catalog's shard ends early")

    with pytest.raises(OSError, match="ends early"):
        save_plan(store, [A], list_like(broken()), registered=3)
    assert store.known_plan("p" * 32) is None
    assert [count(store.engine, table) for table in (t.plan, t.plan_group, t.entry, t.workload)] == [0, 0, 0, 0]


def list_like(items: Any) -> Sequence[Any]:
    """An iterator where a list is expected: the store streams."""
    streamed: Sequence[Any] = items
    return streamed


def test_a_plan_of_many_entries_is_streamed(store: Store) -> None:
    groups = [(eligible(workload(f"w{n}")), 250, n) for n in range(10)]
    plan_id = save_plan(store, [workload(f"w{n}") for n in range(10)], entries(groups))
    with store.engine.connect() as db:
        assert sum(g.entries for g in queries.groups(db, plan_id)) == 2500


def test_any_string_of_a_catalog_is_kept_as_it_is(store: Store) -> None:
    for n, text in enumerate(HOSTILE):
        spec = HfSpec(model_type=text, class_name=text, module=text, config={text: text}, level=0, seed=0, builder=text)
        group = PlanGroup(
            listing=ListingStatus.ELIGIBLE.outcome(text),
            kernel_key="k" * 32,
            graph_key="g" * 32,
            workload=Workload(spec).hash,
            model_type=text,
            class_name=text,
        )
        entry = Entry(id=text, rank=1, downloads=BIG, revision=text, library=text, task=text)
        plan_id = save_plan(store, [Workload(spec)], [(entry, group)], key=f"{n:032}")
        with store.engine.connect() as db:
            (planned,) = queries.groups(db, plan_id)
            row = db.execute(select(t.entry).where(t.entry.c.plan_id == plan_id)).one()
            assert queries.workloads(db, [Workload(spec).hash]) == {Workload(spec).hash: Workload(spec)}
        assert planned.group == group
        assert planned.downloads == BIG
        assert (row.name, row.revision, row.library, row.task) == (text, text, text, text)


def test_any_number_of_a_config_is_kept_as_it_is(store: Store) -> None:
    for number in (math.nan, math.inf, -math.inf, -0.0, 5e-324, 10**60, -(2**200)):
        spec = HfSpec(model_type="t", class_name="C", module="m", config={"x": [number]}, level=0, seed=0, builder="1")
        store.save_workloads([Workload(spec)])
        with store.engine.connect() as db:
            again = queries.workloads(db, [Workload(spec).hash])[Workload(spec).hash]
        assert again.hash == Workload(spec).hash


def test_a_workload_is_stored_once_however_often_it_is_planned(store: Store) -> None:
    store.save_workloads([A, A, B])
    store.save_workloads([B, C])
    assert count(store.engine, t.workload) == 3


def test_one_workload_is_the_candidate_of_a_kernel_key_the_one_of_most_entries_then_downloads(store: Store) -> None:
    gated = PlanGroup(listing=ListingStatus.GATED.outcome("404"))
    tied = sorted((workload("t1"), workload("t2")), key=lambda w: w.hash)
    listed = [
        (eligible(A, "k1"), 2, 50),
        (eligible(B, "k1"), 3, 1),
        (eligible(C, "k2"), 1, 9),
        (gated, 99, 0),
        *((eligible(w, "k3"), 4, 4) for w in tied),
    ]
    plan_id = save_plan(store, [A, B, C, *tied], entries(listed))
    with store.engine.connect() as db:
        found = list(planning.candidates(db, plan_id))
        names = planning.hashes(db, [one.workload_id for one in found])
        again = planning.hashes(db, [one.workload_id for one in reversed(found)])
    weights = {name: (one.family, one.entries, one.downloads) for name, one in zip(names, found, strict=True)}
    assert weights == {B.hash: ("b", 5, 103), C.hash: ("c", 1, 9), tied[1].hash: (tied[1].spec.family, 8, 32)}
    assert names == sorted(names)
    assert again == names[::-1]


def test_families_hold_every_group_once_and_tear_no_kernel_key_apart(store: Store) -> None:
    pool = [workload(f"w{n}") for n in range(12)]
    gated = [PlanGroup(listing=ListingStatus.GATED.outcome(str(n))) for n in range(7)]
    listed = [(eligible(w, f"k{n // 4}"), 1, 1) for n, w in enumerate(pool)] + [(one, 1, 1) for one in gated]
    plan_id = save_plan(store, pool, entries(listed))
    with store.engine.connect() as db:
        parts = list(planning.families(db, plan_id, size=3))
        whole = queries.groups(db, plan_id)
        kin = planning.relatives(db, plan_id, [pool[5].hash, pool[6].hash, pool[11].hash])
    assert sorted((planned for part in parts for planned in part), key=lambda planned: planned.id) == whole
    keys = [{planned.group.kernel_key for planned in part} - {""} for part in parts]
    assert sum(len(one) for one in keys) == 3
    assert max(len(part) for part in parts) <= 2 + 4, "one group short of the size, and then a whole kernel key"
    assert {planned.group.workload for planned in kin} == {w.hash for w in pool[4:]}


def test_heirs_are_groups_whose_own_workload_did_not_run_but_one_of_their_key_did(store: Store) -> None:
    listed = [(eligible(A, "k1"), 2, 1), (eligible(B, "k1"), 3, 1), (eligible(C, "k2"), 1, 1)]
    plan_id = save_plan(store, [A, B, C], entries(listed))
    sweep_id = open_sweep(store, plan_id)
    with store.engine.connect() as db:
        assert list(planning.heirs(db, plan_id, sweep_id)) == []
    store.write(sweep_id, [record(A, EAGER), record(B, EAGER, kind=AttemptKind.AUDIT)])
    with store.engine.connect() as db:
        assert list(planning.heirs(db, plan_id, sweep_id)) == [(B.hash, 3)]


def test_workloads_are_found_in_any_number(store: Store) -> None:
    many = [workload(f"w{n}") for n in range(1201)]
    store.save_workloads(many)
    with store.engine.connect() as db:
        assert len(queries.workloads(db, [w.hash for w in many])) == 1201
        assert queries.workloads(db, []) == {}


# --- sweeps


def test_a_sweep_reads_back_as_it_was_asked_for(store: Store) -> None:
    plan_id = save_plan(store, [A], entries([(eligible(A), 2, 10)]))
    open_sweep(store, plan_id, name="20260101-000000-abcd", budget_s=300.0, select="type:llama\0\ud800", limit=None)
    with store.engine.connect() as db:
        row = queries.sweep(db)
    assert (row.name, row.state, row.summary, row.finished, row.wall_s) == (
        "20260101-000000-abcd",
        "running",
        None,
        None,
        0.0,
    )
    assert row.policy == QUICK.to_json()
    assert (row.policy_name, row.policy_sha256) == ("quick", QUICK.sha256)
    assert row.options == {"budget_s": 300.0, "select": "type:llama\0\ud800", "limit": None}
    assert (row.catalog.name, row.catalog.source.value, row.catalog.registered) == ("little", "synthetic", 2)
    assert (row.device, row.profile, row.seed, row.cores, row.downloads) == ("neuron", "ideal", 7, 2, 20)


def test_a_sweep_is_found_by_name_by_prefix_and_as_the_newest(store: Store) -> None:
    plan_id = save_plan(store, [A], entries([(eligible(A), 1, 1)]))
    for name in ("one", "once", "one-more", "two", "one-last"):
        open_sweep(store, plan_id, name=name)
    with store.engine.connect() as db:
        assert queries.sweep(db).name == "one-last"
        assert queries.sweep(db, "one").name == "one"
        assert queries.sweep(db, "tw").name == "two"
        assert queries.sweep(db, "once").name == "once"
        with pytest.raises(BadInput, match="several"):
            queries.sweep(db, "on")
        for absent in ("three", "%", "_ne", "two\0", "\ud800", "' OR 1=1 --"):
            with pytest.raises(BadInput, match="no sweep called"):
                queries.sweep(db, absent)
        assert [row.name for row in queries.sweeps(db, limit=2)] == ["one-last", "two"]


def test_an_empty_database_has_no_sweep_and_says_what_to_do(engine: Engine) -> None:
    with engine.connect() as db:
        with pytest.raises(BadInput, match="no sweep in this database yet"):
            queries.sweep(db)
        assert queries.sweeps(db) == []


def test_legs_add_up_and_a_reopened_sweep_has_nothing_to_report(store: Store, sweep_id: int) -> None:
    store.finish_sweep(sweep_id, "interrupted", 10.0, summary(planned=3))
    with store.engine.connect() as db:
        first = queries.sweep(db)
    assert (first.state, first.wall_s) == ("interrupted", 10.0)
    assert first.summary == summary(planned=3)
    assert first.finished is not None
    store.reopen_sweep(sweep_id)
    with store.engine.connect() as db:
        again = queries.sweep(db)
    assert (again.state, again.finished, again.summary) == ("running", None, None)
    store.finish_sweep(sweep_id, "done", 5.0, summary(planned=4))
    with store.engine.connect() as db:
        assert queries.sweep(db).wall_s == 15.0


def test_two_sweeps_of_one_name_are_refused(store: Store) -> None:
    plan_id = save_plan(store, [A], entries([(eligible(A), 1, 1)]))
    open_sweep(store, plan_id, name="one")
    with pytest.raises(IntegrityError):
        open_sweep(store, plan_id, name="one")


# --- attempts


def test_findings_read_back_by_workload_variant_and_check(store: Store, sweep_id: int) -> None:
    crash = failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm")
    store.write(sweep_id, [record(A, EAGER, crash), record(A, COMPILED), record(B, EAGER)])
    assert found(store.engine, sweep_id, A) == {f.check: f.outcome for f in crash}
    assert found(store.engine, sweep_id, A, COMPILED) == {f.check: f.outcome for f in passed(COMPILED)}
    assert found(store.engine, sweep_id, C) == {}


def test_every_kind_of_outcome_is_kept_with_any_detail(store: Store, sweep_id: int) -> None:
    outcomes = [Outcome.of(kind, HOSTILE[n % len(HOSTILE)]) for n, kind in enumerate(Kind)]
    outcomes += [Outcome.of(Kind.RUN_ERROR, text) for text in HOSTILE]
    written = [(workload(f"outcome{n}"), outcome) for n, outcome in enumerate(outcomes)]
    store.save_workloads(of for of, _ in written)
    store.write(sweep_id, [record(of, EAGER, [Finding(check=Check.RUN, outcome=said)]) for of, said in written])
    with store.engine.connect() as db:
        read = queries.findings(db, sweep_id)
        blocked = {(b.workload, b.outcome) for b in occurrences(db, sweep_id)}
    for of, outcome in written:
        assert read[of.hash] == {(EAGER, Check.RUN): outcome}
        assert ((of.hash, outcome) in blocked) == (outcome.standing is Standing.FAIL)


@given(detail=st.text(st.characters(), max_size=40), words=st.text(st.characters(), max_size=40))
@settings(max_examples=12)
def test_what_a_stranger_wrote_reads_back(store: Store, sweep_id: int, detail: str, words: str) -> None:
    of = workload("stranger", seed=hash((detail, words)) & 0xFFFFFF)
    store.save_workloads([of])
    finding = said(Check.RUN, Kind.RUN_ERROR, detail, evidence={"words": words, words: [detail, {detail: words}]})
    store.write(sweep_id, [record(of, EAGER, [finding])])
    with store.engine.connect() as db:
        attempt = next(o.attempt for o in occurrences(db, sweep_id) if o.workload == of.hash)
        kept = db.execute(select(t.result.c.blob_id).where(t.result.c.attempt_id == attempt)).scalar_one()
        assert queries.blob(db, kept)["words"] == words


def test_a_measure_is_kept_and_nan_is_none(store: Store, sweep_id: int) -> None:
    measures = (None, 1.5, 0.0, math.inf, math.nan, 1e308, 5e-324)
    outcomes = [Outcome(Kind.PARITY_NAN, str(n)) for n in range(len(measures))]
    pool = [workload(f"measured{n}") for n in range(len(measures))]
    store.save_workloads(pool)
    for of, outcome, measure in zip(pool, outcomes, measures, strict=True):
        store.write(sweep_id, [record(of, EAGER, [Finding(check=Check.PARITY, outcome=outcome, measure=measure)])])
    with store.engine.connect() as db:
        kept = list(db.execute(select(t.result.c.measure).order_by(t.result.c.attempt_id)).scalars())
    assert kept == [None, 1.5, 0.0, math.inf, None, 1e308, 5e-324]


def test_a_ticket_is_written_once(store: Store, sweep_id: int) -> None:
    first, second = record(A, EAGER), record(A, EAGER, failed(EAGER, Check.RUN, Kind.RUN_CRASH))
    assert first.ticket == second.ticket
    store.write(sweep_id, [first, second])
    store.write(sweep_id, [second])
    store.write(sweep_id, [])
    assert count(store.engine, t.attempt) == 1
    assert count(store.engine, t.result) == len(checks(EAGER))
    assert count(store.engine, t.blocker) == 0
    assert found(store.engine, sweep_id, A)[Check.RUN].kind is Kind.RUN_PASS


def test_a_batch_that_breaks_leaves_nothing_behind(store: Store, sweep_id: int) -> None:
    twice = [said(Check.RUN, Kind.RUN_PASS), said(Check.RUN, Kind.RUN_ERROR)]
    with pytest.raises(IntegrityError):
        store.write(sweep_id, [record(A, EAGER), record(B, EAGER, twice)])
    assert [count(store.engine, table) for table in (t.attempt, t.result, t.blocker, t.blob)] == [0, 0, 0, 0]


def test_large_batches_are_written_whole(store: Store, sweep_id: int) -> None:
    many = [workload(f"m{n}") for n in range(1100)]
    store.save_workloads(many)
    store.write(sweep_id, [record(w, EAGER, [said(Check.RUN, Kind.RUN_PASS)]) for w in many])
    assert count(store.engine, t.attempt) == 1100
    with store.engine.connect() as db:
        assert len(queries.findings(db, sweep_id)) == 1100


def test_equal_evidence_is_stored_once(store: Store, sweep_id: int) -> None:
    evidence = {"words": "the same", "stack": "x" * 10_000}
    body = {"exit": {"done": True}}
    store.write(
        sweep_id,
        [
            record(w, EAGER, [said(Check.RUN, Kind.RUN_PASS, evidence=dict(evidence))], record=dict(body))
            for w in (A, B)
        ],
    )
    store.write(sweep_id, [record(C, EAGER, [said(Check.RUN, Kind.RUN_PASS, evidence=evidence)], record=body)])
    assert count(store.engine, t.blob) == 2
    with store.engine.connect() as db:
        sizes = db.execute(select(t.blob.c.size, func.length(t.blob.c.data))).all()
        kept = [queries.blob(db, id_) for id_ in db.execute(select(t.blob.c.id)).scalars()]
        assert queries.blob(db, None) == {}
    assert all(packed < size or size < 100 for size, packed in sizes)
    assert sorted(kept, key=str) == sorted([evidence, body], key=str)


def test_evidence_of_any_number_and_string_is_strict_json(store: Store, sweep_id: int) -> None:
    evidence = {"words": "w\0\ud800", "worst": math.nan, "list": [math.inf, 10**40], "nested": {"\0": "\udfff"}}
    store.write(sweep_id, [record(A, EAGER, [said(Check.RUN, Kind.RUN_PASS, evidence=evidence)])])
    with store.engine.connect() as db:
        kept = queries.blob(db, db.execute(select(t.result.c.blob_id)).scalar_one())
    assert kept["words"] == "w\0\ud800"
    assert kept["worst"] == {"__float__": "NaN"}
    assert kept["list"] == [{"__float__": "Infinity"}, 10**40]
    json.dumps(kept, allow_nan=False)


def test_numbers_of_an_attempt_may_be_large(store: Store, sweep_id: int) -> None:
    store.write(sweep_id, [record(A, EAGER, peak_rss=BIG, cpu_s=1e12, node="n" * 500, worker="w" * 500)])
    with store.engine.connect() as db:
        row = db.execute(select(t.attempt)).one()
        assert queries.work(db, sweep_id).cpu_s == 1e12
    assert (row.peak_rss, len(row.node), len(row.worker)) == (BIG, 64, 64)


def test_every_failing_outcome_of_a_check_is_a_blocker_once(store: Store, sweep_id: int) -> None:
    others = tuple(Outcome(Kind.FALLBACK_NO_KERNEL, op) for op in ("aten::b", "aten::a", "aten::b"))
    falls = but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::a", others=others))
    blocked = failed(COMPILED, Check.COMPILE, Kind.COMPILE_REFUSED, "NCC_1")
    store.write(sweep_id, [record(A, EAGER, falls), record(A, COMPILED, blocked), record(B, EAGER)])
    with store.engine.connect() as db:
        rows = [(b.workload, b.variant, str(b.outcome), b.attempts) for b in occurrences(db, sweep_id)]
    assert rows == [
        (A.hash, EAGER, "fallback:no-kernel(aten::a)", 1),
        (A.hash, EAGER, "fallback:no-kernel(aten::b)", 1),
        (A.hash, COMPILED, "compile:refused(NCC_1)", 1),
    ]


# --- what counts


def test_only_records_and_solo_runs_count(store: Store, sweep_id: int) -> None:
    bad = failed(EAGER, Check.RUN, Kind.RUN_CRASH)
    for n, kind in enumerate(AttemptKind):
        of = workload(f"kind{n}")
        store.save_workloads([of])
        store.write(sweep_id, [record(of, EAGER, bad, kind=kind)])
        assert bool(found(store.engine, sweep_id, of)) is kind.counts
    with store.engine.connect() as db:
        work = queries.work(db, sweep_id)
        blocked = {b.workload for b in occurrences(db, sweep_id)}
    assert work.by_kind == {kind.value: 1 for kind in AttemptKind}
    assert (work.attempts, work.workloads, work.cases) == (7, 2, 2)
    # Probes add blockers although they never count.
    assert len(blocked) == 4


def test_a_solo_run_replaces_the_record_it_was_made_for_entirely(store: Store, sweep_id: int) -> None:
    company = failed(COMPILED, Check.RUN, Kind.RUN_CRASH, "SIGSEGV")
    alone = [said(Check.RUN, Kind.RUN_PASS)]
    store.write(sweep_id, [record(A, COMPILED, company), record(A, EAGER, failed(EAGER, Check.LOAD, Kind.LOAD_OOM))])
    store.write(sweep_id, [record(A, COMPILED, alone, kind=AttemptKind.ALONE)])
    assert found(store.engine, sweep_id, A, COMPILED) == {Check.RUN: Outcome(Kind.RUN_PASS)}
    assert found(store.engine, sweep_id, A, EAGER)[Check.LOAD] == Outcome(Kind.LOAD_OOM)
    with store.engine.connect() as db:
        assert [str(b.outcome) for b in occurrences(db, sweep_id)] == ["load:oom"]


def test_the_first_attempt_counts(store: Store, sweep_id: int) -> None:
    store.write(sweep_id, [record(A, EAGER, failed(EAGER, Check.RUN, Kind.RUN_CRASH), take=1)])
    store.write(sweep_id, [record(A, EAGER, passed(EAGER), take=2)])
    store.write(sweep_id, [record(A, EAGER, passed(EAGER), kind=AttemptKind.RETRY)])
    assert found(store.engine, sweep_id, A)[Check.RUN].kind is Kind.RUN_CRASH


def test_sweeps_do_not_see_each_others_attempts(store: Store, sweep_id: int) -> None:
    other = open_sweep(store, 1, name="other")
    store.write(sweep_id, [record(A, EAGER, failed(EAGER, Check.RUN, Kind.RUN_CRASH))])
    store.write(other, [record(A, EAGER, take="other")])
    assert found(store.engine, sweep_id, A)[Check.RUN].kind is Kind.RUN_CRASH
    assert found(store.engine, other, A)[Check.RUN].kind is Kind.RUN_PASS
    assert count(store.engine, t.case) == 1


# --- resume


def cases(*pairs: tuple[Workload, Variant]) -> list[Case]:
    return [Case(workload=w.hash, device="neuron", variant=v) for w, v in pairs]


def left(engine: Engine, sweep_id: int) -> list[tuple[str, Variant]]:
    with engine.connect() as db:
        return [(one.workload, one.variant) for one in planning.outstanding(db, sweep_id)]


def test_what_is_left_is_what_was_planned_and_has_no_attempt_that_counts(store: Store, sweep_id: int) -> None:
    planned = [(C, EAGER), (A, EAGER), (A, COMPILED), (B, EAGER)]
    store.plan_cases(sweep_id, cases(*planned))
    assert left(store.engine, sweep_id) == [(w.hash, v) for w, v in planned]
    store.write(sweep_id, [record(A, EAGER)])
    for kind in (AttemptKind.PROBE, AttemptKind.AUDIT, AttemptKind.CONTROL, AttemptKind.RETRY):
        store.write(sweep_id, [record(B, EAGER, kind=kind)])
    store.write(sweep_id, [record(C, EAGER, failed(EAGER, Check.BUILD, Kind.BUILD_ERROR), kind=AttemptKind.ALONE)])
    assert left(store.engine, sweep_id) == [(A.hash, COMPILED), (B.hash, EAGER)]


def test_planning_the_same_cases_again_changes_nothing(store: Store, sweep_id: int) -> None:
    planned = cases((A, EAGER), (B, EAGER))
    store.plan_cases(sweep_id, planned)
    store.plan_cases(sweep_id, planned)
    assert left(store.engine, sweep_id) == [(A.hash, EAGER), (B.hash, EAGER)]


def test_what_is_left_is_counted_and_read_in_parts(store: Store, sweep_id: int) -> None:
    store.plan_cases(sweep_id, cases((A, EAGER), (A, COMPILED), (B, EAGER), (C, EAGER)))
    store.write(sweep_id, [record(B, EAGER)])
    with store.engine.connect() as db:
        assert planning.left(db, sweep_id) == planning.Left(cases=3, workloads=2)
        assert planning.planned_workloads(db, sweep_id) == 3
        first = planning.outstanding(db, sweep_id, limit=2)
        rest = planning.outstanding(db, sweep_id, after=first[-1].position)
    assert [one.workload for one in first] == [A.hash, A.hash]
    assert [(one.workload, one.position) for one in rest] == [(C.hash, 3)]


def test_another_sweeps_attempts_leave_the_case_to_be_run(store: Store, sweep_id: int) -> None:
    other = open_sweep(store, 1, name="other")
    store.plan_cases(sweep_id, cases((A, EAGER)))
    store.plan_cases(other, cases((A, EAGER)))
    store.write(other, [record(A, EAGER)])
    assert left(store.engine, sweep_id) == [(A.hash, EAGER)]
    assert left(store.engine, other) == []


def test_the_order_of_very_many_cases_is_kept(store: Store, sweep_id: int) -> None:
    many = [workload(f"o{n}") for n in range(1200)]
    store.save_workloads(many)
    store.plan_cases(sweep_id, (Case(workload=w.hash, device="neuron", variant=EAGER) for w in many))
    assert [hash_ for hash_, _ in left(store.engine, sweep_id)] == [w.hash for w in many]


# --- controls, costs, standings


def test_controls_are_kept_with_their_verdict(store: Store, sweep_id: int) -> None:
    verdict = ControlVerdict(name="n" * 64, guards="parity", expected="parity:scale", judged="x" * 80, caught=False)
    store.write(sweep_id, [replace(record(A, EAGER, kind=AttemptKind.CONTROL), control=verdict), record(B, EAGER)])
    with store.engine.connect() as db:
        (row,) = queries.controls(db, sweep_id)
    assert (row.name, row.guards, row.expected, row.judged, row.caught) == (
        "n" * 64,
        "parity",
        "parity:scale",
        "x" * 80,
        False,
    )


def test_costs_are_learnt_from_what_counts_in_every_sweep(store: Store, sweep_id: int) -> None:
    other = open_sweep(store, 1, name="other")
    store.write(sweep_id, [record(A, EAGER, cpu_s=2.0), record(A, COMPILED, cpu_s=8.0)])
    store.write(other, [record(A, EAGER, cpu_s=4.0, take=2), record(B, EAGER, cpu_s=1.0, kind=AttemptKind.AUDIT)])
    with store.engine.connect() as db:
        learnt = sorted(queries.costs(db))
    assert learnt == [("a", "compile/fp32/train", 1, 8.0), ("a", "eager/fp32/train", 2, 6.0)]


def standings_of(engine: Engine, sweep_id: int) -> Mapping[str, int]:
    with engine.connect() as db:
        return queries.reconciliation(db, sweep_id, 1)


def test_sql_counts_the_entries_themselves(store: Store, sweep_id: int) -> None:
    assert standings_of(store.engine, sweep_id) == {"(none)": 6}
    with store.engine.connect() as db:
        groups = queries.groups(db, 1)
    green = {(v, f.check): f.outcome for v in (EAGER, COMPILED) for f in passed(v)}
    states = [
        entry_state(QUICK, Outcome(Kind.LISTING_ELIGIBLE), green, Evidence.EXECUTED),
        entry_state(QUICK, Outcome(Kind.LISTING_ELIGIBLE), {}, Evidence.NONE, Outcome(Kind.NOT_RUN_BUDGET)),
    ]
    store.save_standings(sweep_id, [(groups[0].id, states[0]), (groups[1].id, states[1])])
    assert standings_of(store.engine, sweep_id) == {"green": 2, "builds not-run:budget": 2, "(none)": 2}
    store.save_standings(sweep_id, [(group.id, states[0]) for group in groups])
    assert standings_of(store.engine, sweep_id) == {"green": 6}


def test_a_probes_ticket_fits_its_column(store: Store, sweep_id: int) -> None:
    """A worker names the probes of a ticket of 32 digits `TICKET.1`, `TICKET.2`, ..."""
    first = record(A, EAGER)
    probe = record(A, EAGER, kind=AttemptKind.PROBE, ticket=f"{first.ticket}.12", probe_of=first.ticket)
    store.write(sweep_id, [first, probe])
    with store.engine.connect() as db:
        rows = db.execute(select(t.attempt.c.ticket, t.attempt.c.probe_of).order_by(t.attempt.c.id)).all()
    assert [tuple(row) for row in rows] == [(first.ticket, None), (probe.ticket, first.ticket)]


def test_a_driver_whose_sweep_was_taken_up_by_another_writes_no_more(url: str, engine: Engine, sweep_id: int) -> None:
    other = open_engine(url)
    first, second = Store(engine), Store(other)
    first.take_up(sweep_id)
    first.write(sweep_id, [record(A, EAGER)])
    second.take_up(sweep_id)
    for late in (
        partial(first.write, sweep_id, [record(B, EAGER)]),
        partial(first.finish_sweep, sweep_id, "done", 1.0, None),
        partial(first.save_standings, sweep_id, []),
    ):
        with pytest.raises(EnvironmentFault, match="another driver has taken this sweep up"):
            late()
    second.write(sweep_id, [record(B, EAGER)])
    assert count(engine, t.attempt) == 2
    other.dispose()


def test_a_server_that_restarts_is_waited_for_and_nothing_is_written_twice(postgres: Server) -> None:
    postgres.empty()
    engine = open_engine(postgres.url, create=True)
    store = Store(engine)
    sweep_id = open_sweep(store, save_plan(store, [A, B], entries([(eligible(w), 2, 10) for w in (A, B)])))
    store.take_up(sweep_id)
    both = [record(A, EAGER), record(B, EAGER)]
    store.write(sweep_id, both[:1])
    postgres.stop()
    with pytest.raises(DatabaseAway):
        patiently(partial(store.write, sweep_id, both), patience_s=0.0)
    again = threading.Timer(0.3, postgres.serve)
    again.start()
    patiently(partial(store.write, sweep_id, both), pause_s=0.1)
    again.join()
    assert count(engine, t.attempt) == 2
    engine.dispose()
