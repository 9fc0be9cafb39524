"""Every malformed or hostile config gets exactly the status its entry expects, and nothing else happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuronqa import catalog
from neuronqa.catalog.expectations import expects_listing
from neuronqa.catalog.status import from_facts
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.domain.outcome import Outcome
from neuronqa.sweep.answers import Answer
from neuronqa.sweep.plan import plan_configs

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


@pytest.mark.full
def test_what_is_eligible_builds_or_fails_as_expected(answers: dict[str, Answer]) -> None:
    eligible = [entry for entry in ENTRIES if listing(entry, answers).standing.value == "pass"]
    workloads = [answers[entry.config or ""]["workload"] for entry in eligible]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("build_probe.py"))],
        input="".join(json.dumps(workload) + "\n" for workload in workloads),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    found = dict(zip((entry.id for entry in eligible), map(json.loads, done.stdout.splitlines()), strict=True))
    wanted = {
        entry.id: next((text for check, text in entry.expected.items() if check != "listing"), "reference:pass")
        for entry in eligible
    }
    assert found == wanted
