"""What an address asks for is text; columns of numbers and truths are filtered by it on every database."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from neuronqa.db import queries
from neuronqa.db.browse import clusters, sweeps
from neuronqa.db.browse.listing import Ask, browse
from neuronqa.db.store import Store
from neuronqa.domain.outcome import Check, Kind
from neuronqa.errors import BadInput
from tests.builders import EAGER, eligible, entries, failed, save_plan, workload
from tests.triaged import both, sweep

CRASH = failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm")


@pytest.fixture
def sweep_id(engine: Engine) -> int:
    pool = [workload("a"), workload("b")]
    plan = save_plan(Store(engine), pool, entries([(eligible(of), 1, 1) for of in pool]))
    return sweep(engine, plan, "one", [one for of in pool for one in both(of, CRASH)])


def test_members_are_filtered_by_the_number_of_a_cluster_and_by_a_truth(engine: Engine, sweep_id: int) -> None:
    with engine.connect() as db:
        row = queries.sweep(db, "one")
        everything = browse(db, clusters.members(row), Ask()).rows
        (cluster,) = {one["cluster"] for one in everything}

        def found(name: str, value: str) -> int:
            return len(browse(db, clusters.members(row), Ask(filters={name: (value,)})).rows)

        assert found("cluster", str(cluster)) == len(everything) == 2
        assert found("cluster", str(cluster + 1)) == 0
        assert (found("symptom", "0"), found("symptom", "1")) == (2, 0)
        assert browse(db, sweeps.controls(sweep_id), Ask(filters={"caught": ("1",)})).rows == []


@pytest.mark.usefixtures("sweep_id")
@pytest.mark.parametrize("value", ["", "x", "-1", "1e3", "9" * 30, "\u0664"])
def test_what_is_no_number_is_refused(engine: Engine, value: str) -> None:
    with engine.connect() as db, pytest.raises(BadInput, match="cluster is a number"):
        browse(db, clusters.members(queries.sweep(db, "one")), Ask(filters={"cluster": (value,)}))
