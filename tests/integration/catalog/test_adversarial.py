"""Every malformed or hostile config gets exactly the status its entry expects, and nothing else happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from neuronqa import catalog
from neuronqa.catalog.expectations import LISTING, expects_listing, surprises
from neuronqa.catalog.status import from_facts
from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.domain.outcome import Outcome, Standing
from neuronqa.sweep.answers import Answer
from neuronqa.sweep.plan import plan_configs
from neuronqa.sweep.standings import standings

ROOT = Path(__file__).parents[3]
ADVERSARIAL = catalog.open("adversarial")
ENTRIES = list(ADVERSARIAL.entries())


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What the real planner says of each config; it must survive all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURONQA_CACHE", str(tmp_path_factory.mktemp("cache")))
        return {answer["hash"]: answer for answer in plan_configs(ADVERSARIAL)}


def listing(entry: Entry, answers: dict[str, Answer]) -> Outcome:
    decided = from_facts(entry)
    if decided is not None:
        return decided[0].outcome(decided[1])
    answer = answers[entry.config or ""]
    return ListingStatus(answer["status"]).outcome(answer["reason"] or "")


def test_there_are_many_kinds_and_they_are_a_catalog_of_their_own() -> None:
    assert len(ENTRIES) >= 80
    assert ADVERSARIAL.info.source is Source.BUNDLED
    assert not {entry.id for entry in ENTRIES} & {entry.id for entry in catalog.open("mini").entries()}


@pytest.mark.parametrize("entry", ENTRIES, ids=[str(entry.rank) for entry in ENTRIES])
def test_an_entry_is_listed_as_expected(entry: Entry, answers: dict[str, Answer]) -> None:
    found = listing(entry, answers)
    assert expects_listing(entry, found), f"{entry.id!r}: {found}, expected {dict(entry.expected)}"


def test_a_reason_is_one_clean_short_line(answers: dict[str, Answer]) -> None:
    for entry in ENTRIES:
        text = str(listing(entry, answers))
        assert text.isprintable(), entry.id
        assert len(text) < 250, entry.id
        assert listing(entry, answers).standing.value == "pass" or "(" in text, f"{entry.id!r} has no reason"


def test_nothing_inherits_the_verdict_of_what_expects_another(answers: dict[str, Answer]) -> None:
    wanted: dict[str, set[str]] = {}
    for entry in ENTRIES:
        key = answers[entry.config]["kernel_key"] if entry.config in answers else ""
        if key:
            wanted.setdefault(key, set()).add(json.dumps(dict(entry.expected), sort_keys=True))
    assert len(wanted) > 25
    assert [expectations for expectations in wanted.values() if len(expectations) > 1] == []


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """A real sweep over all of it, on a device without limits."""
    url = f"sqlite:///{tmp_path_factory.mktemp('adversarial') / 'a.db'}"
    arguments = ["sweep", "--catalog", "adversarial", "--profile", "ideal", "--db", url, "--json"]
    done = subprocess.run(
        [sys.executable, "-c", "from neuronqa.cli.main import run; run()", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["catalog"]["registered"] == len(ENTRIES)
    return open_engine(url).connect()


@pytest.mark.full
def test_a_sweep_finds_of_every_entry_what_it_expects(swept: Connection) -> None:
    """Listed, built, run and judged: own verdicts and inherited ones, and nothing besides."""
    row = queries.sweep(swept)
    found = standings(swept, row)
    outcomes = queries.findings(swept, row.id)
    by_name = {one.name: one.group_id for one in swept.execute(select(t.entry.c.name, t.entry.c.group_id))}
    listings = {planned.id: planned.group.listing for planned in found.groups}
    said: list[str] = []
    for entry in ENTRIES:
        group = by_name[entry.id]
        assert expects_listing(entry, listings[group]), entry.id
        of = outcomes.get(found.standing_by.get(group, ""), {})
        assert of or listings[group].standing is not Standing.PASS, f"{entry.id} was not judged"
        said += surprises(entry, ((variant, check, outcome) for (variant, check), outcome in of.items()))
        texts = {str(outcome) for outcome in of.values()}
        said += [
            f"{entry.id}: {name} idle" for name, text in entry.expected.items() if name != LISTING and text not in texts
        ]
    assert said == []
