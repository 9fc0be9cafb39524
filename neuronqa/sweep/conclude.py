"""What is worked out once when a sweep ends and only read from then on: standings, tallies, operators."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from neuronqa.db import planning, queries, tallies
from neuronqa.db import tally_tables as tt
from neuronqa.db.queries import SweepRow
from neuronqa.db.rows import Row
from neuronqa.db.store import Store
from neuronqa.domain.case import Variant
from neuronqa.domain.policy import Policy
from neuronqa.sweep.operators import Operators, Used
from neuronqa.sweep.standings import partial_standings, unsaid
from neuronqa.sweep.tally import Tally, Weight


def conclude(store: Store, name: str) -> None:
    """Keep where every group of a finished sweep stands, and every sum a page shows. Repeating it changes nothing."""
    with store.engine.connect() as db:
        row = queries.sweep(db, name)
        tally = Tally(Policy.from_json(row.policy), unsaid(row))
        store.save_standings(row.id, tally.watch(partial_standings(db, row)))
    with store.engine.connect() as db:
        operators = Operators(tally.behind)
        operators.add(_used(db, row))
        failures = [dict(one._mapping) for one in planning.failure_counts(db, row.id)]
    new = {tt.rung_tally: _rungs(tally), tt.state_tally: _states(tally), tt.failure_tally: failures}
    of_operators = {tt.op_tally: _uses(operators), tt.op_need: _needs(operators), tt.op_sample: _samples(operators)}
    tallies.replace(store.engine, row.id, {**new, **of_operators})


def _used(db: Connection, row: SweepRow) -> Iterator[Used]:
    for one in planning.records(db, row.id):
        yield Used(
            attempt=one.id,
            workload_id=one.workload_id,
            workload=one.hash,
            variant=Variant.parse(one.variant),
            ops=queries.unpacked(one.data).get("ops", ()),
        )


def _weight(weight: Weight) -> Row:
    return {"entries": weight.entries, "downloads": weight.downloads}


def _rungs(tally: Tally) -> Iterator[Row]:
    for (lane, rung, evidence, standing), weight in tally.rungs.items():
        key = {"lane": lane, "rung": rung.value, "evidence": evidence.value, "standing": standing.value}
        yield {**key, **_weight(weight)}


def _states(tally: Tally) -> Iterator[Row]:
    for (family, label, evidence, missed), weight in tally.states.items():
        yield {"family": family, "label": label, "evidence": evidence.value, "missed": missed, **_weight(weight)}


def _uses(operators: Operators) -> Iterator[Row]:
    for (op, dtype, mechanism), use in operators.uses.items():
        yield {
            "op": op,
            "dtype": dtype,
            "mechanism": mechanism,
            "calls": use.calls,
            "nbytes": use.nbytes,
            "ns": use.ns,
            "workloads": len(use.workloads),
            "entries": sum(weight.entries for weight in use.workloads.values()),
            "downloads": sum(weight.downloads for weight in use.workloads.values()),
        }


def _needs(operators: Operators) -> Iterator[Row]:
    for (op, workload_id), calls in operators.needs.items():
        yield {"op": op, "workload_id": workload_id, "calls": calls, **_weight(operators.weights[workload_id])}


def _samples(operators: Operators) -> Iterator[Row]:
    for op in operators.samples:
        for position, sample in enumerate(operators.worksheet(op)):
            yield {
                "op": op,
                "position": position,
                "dtype": sample.dtype,
                "phase": sample.phase,
                "direction": sample.direction,
                "shapes": sample.shapes,
                "strides": sample.strides,
                "calls": sample.calls,
                "workloads": len(sample.workloads),
                "entries": sample.entries,
                "downloads": sample.downloads,
                "attempt_id": sample.attempt,
            }
