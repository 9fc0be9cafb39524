"""What was published stands beside what was found, for the whole suite on its profile and for nothing else."""

from dataclasses import replace

import pytest

from neuronqa.domain.catalog import CatalogInfo, Source
from neuronqa.domain.ladder import Gate
from neuronqa.domain.outcome import Rung
from neuronqa.report.beside import beside

FLEX = CatalogInfo(name="flex-attention", source=Source.BUNDLED, sha256="0" * 64, registered=96, created="")
GATES = (Gate(rung=Rung.RUNS, registered=96, passed=90, failed=6, not_run=0, low=0.9, high=0.9),)
STATES = {"green": 90, "runs compile:timeout": 5, "runs compile:refused": 1}


def test_entries_are_counted_by_rung_and_by_outcome() -> None:
    runs, over = beside(FLEX, "trn3-sdk2.33", GATES, STATES)
    assert (runs.published, runs.here, runs.unit) == (89, 90, "entries")
    assert runs.error == pytest.approx(1 / 89)
    assert (over.published, over.here) == (7, 5)


@pytest.mark.parametrize(
    ("catalog", "profile"),
    [
        (FLEX, "trn2-sdk2.33"),
        (replace(FLEX, name="flex-attention[top-10]"), "trn3-sdk2.33"),
        (replace(FLEX, source=Source.FILE), "trn3-sdk2.33"),
        (replace(FLEX, name="mini"), "trn3-sdk2.33"),
    ],
)
def test_nothing_stands_beside_another_profile_a_part_or_another_catalog(catalog: CatalogInfo, profile: str) -> None:
    assert beside(catalog, profile, GATES, STATES) == ()


def test_modelled_first_steps_are_called_modelled() -> None:
    found = beside(replace(FLEX, name="compile-tax"), "trn2-sdk2.33", GATES, STATES)
    assert len(found) == 3
    assert all(one.modelled and one.unit == "s" for one in found)
