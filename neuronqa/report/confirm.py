"""Regressions looked at again: every case alone, equally often on both builds, so that neither is favoured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection

from neuronqa.db import clusters, entry_rows, queries
from neuronqa.db.queries import SweepRow
from neuronqa.domain.case import Variant
from neuronqa.domain.change import Change
from neuronqa.domain.outcome import Check, Standing
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.report.compare import Comparison, confirmed
from neuronqa.report.export import SUFFIX
from neuronqa.sweep.rerun import bench, order

TIMES: Final = 3
"""Runs of each side where nobody asks for another number."""
GONE: Final = "not run again: a build is not here any more"

Cases = Mapping[str, Mapping[Variant, frozenset[Check]]]
"""Workload hash -> variant -> the checks that fail in the newer sweep."""


def possible(found: Comparison) -> bool:
    """Does this database hold both sides? An exported file holds no workloads."""
    return not any(side.name.endswith(SUFFIX) for side in (found.a, found.b))


def confirm(db: Connection, found: Comparison, times: int = TIMES) -> Comparison:
    """Run what regressed again, and note at each entry how often it failed on either build.

    Neither side is run where one of the builds is not here. Raises BadInput for an exported file.
    """
    if not possible(found):
        raise BadInput("an exported file cannot be run again", hint="compare two sweeps of this database")
    a, b = queries.sweep(db, found.a.name), queries.sweep(db, found.b.name)
    regressed = {line.name for line in found.of(Change.REGRESSED)}
    try:
        for row in (a, b):
            order(row)
    except EnvironmentFault:
        return confirmed(found, dict.fromkeys(regressed, GONE))
    workload_of = clusters.standing_by(db, b.id)
    names: dict[str, list[str]] = defaultdict(list)
    for one in entry_rows.entries(db, b):
        if one.name in regressed and one.group_id in workload_of:
            names[workload_of[one.group_id]].append(one.name)
    cases = clusters.failing_checks(db, b.id, list(names))
    counts = [_failures(db, row, cases, times) for row in (a, b)]
    words = {
        name: _words(counts[0][workload], counts[1][workload], times)
        for workload, entries in names.items()
        for name in entries
    }
    return confirmed(found, words)


def _failures(db: Connection, row: SweepRow, cases: Cases, times: int) -> dict[str, int]:
    """How often each workload failed one of the checks again."""
    bodies = queries.workloads(db, list(cases))
    failed = dict.fromkeys(cases, 0)
    with bench(row) as runner:
        for workload, by_variant in cases.items():
            for _ in range(times):
                again = runner.run(bodies[workload], list(by_variant))
                failed[workload] += any(
                    finding.outcome.standing is Standing.FAIL
                    for variant, checks in by_variant.items()
                    for finding in (again[variant].findings if variant in again else ())
                    if finding.check in checks
                )
    return failed


def _words(before: int, after: int, times: int) -> str:
    if before == 0 and after == times:
        return f"confirmed: failed {after} of {times}, before 0 of {times}"
    if after == 0:
        return f"not reproduced: failed 0 of {times}, before {before} of {times}"
    return f"flaky: failed {after} of {times}, before {before} of {times}"
