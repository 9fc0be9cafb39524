"""A database as large as triage gets, made through the real writers, and what settling it costs, as JSON:

    python -m tests.benchmark.large DATABASE [--results 1000000] [--entries 100000] [--clusters 2000]

Two sweeps of one plan: an older one with a tenth of the results, and the newest with all of them. Nothing is executed;
what the workers would have sent is drawn from a seed, hostile strings among it. The rates mean nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from neuronqa.db import queries
from neuronqa.db.engine import open_engine
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store, SweepHeader
from neuronqa.domain.build import BuildVector
from neuronqa.domain.case import AttemptKind, Case, Variant
from neuronqa.domain.catalog import CatalogInfo, Entry, ListingStatus, Source
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.policy import Policy, applies
from neuronqa.domain.workload import HfSpec, Workload
from neuronqa.report.build import triaged
from neuronqa.sweep.conclude import conclude
from neuronqa.sweep.policies import load_policy

FAMILIES: Final = 220
HOSTILE: Final = ("<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "\u202eltr", "=HYPERLINK(1)", "]]>", "a\\|b `c`")
TASKS: Final = ("text-generation", "fill-mask", "image-classification", "automatic-speech-recognition", "")
OPS: Final = tuple(f"aten::operator_{n}.default" for n in range(600))
BATCH: Final = 2000
PER_CASE: Final = 10.7
"""Checks that apply to a case of the gating policy, on average."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A failing outcome to draw from, and the variant it shows in (all where that is empty)."""

    check: Check
    outcome: Outcome
    mode: str


def causes(count: int) -> list[Cause]:
    """As many different causes, most of them operators that fall back, the rest of every other kind."""
    makers: tuple[tuple[Check, Kind, str, str], ...] = (
        (Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::missing_{}.default float32", "eager"),
        (Check.FALLBACK, Kind.FALLBACK_ARGUMENTS, "aten::refused_{}.default int64", "eager"),
        (Check.GRAPH, Kind.GRAPH_BREAK, "GB{:04} Attempted to call what cannot be traced", "compile"),
        (Check.PARITY, Kind.PARITY_SCALE, "aten::wrong_{}.default float32", ""),
        (Check.COMPILE, Kind.COMPILE_REFUSED, "NCC_EVRF{:03} aten::refused_{:03}", "compile"),
        (Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::crashing_{}.default", ""),
        (Check.TRAIN, Kind.TRAIN_DIVERGED, "aten::drifting_{}.default bfloat16", ""),
        (Check.STATE, Kind.STATE_REPLACED, "pattern {}", ""),
    )
    made = []
    for n in range(count):
        check, kind, form, mode = makers[0 if n % 2 else n // 2 % len(makers)]
        made.append(Cause(check, Outcome.of(kind, form.format(n, n)), mode))
    return made


class Maker:
    """Draws everything from one seed, so that the same call makes the same database."""

    def __init__(self, entries: int, clusters: int, policy: Policy) -> None:
        self.random = random.Random(20)
        self.entries = entries
        self.policy = policy
        self.causes = causes(clusters)
        self._heights = [1 / (1 + n) ** 0.7 for n in range(clusters)]
        self._seldom = iter(range(clusters))
        self._bodies = [self._body(n) for n in range(FAMILIES)]

    def workloads(self, count: int) -> list[Workload]:
        return [
            Workload(
                HfSpec(
                    model_type=f"family{n % FAMILIES}",
                    class_name=f"Family{n % FAMILIES}ForTask{n % 5}",
                    module=f"transformers.models.family{n % FAMILIES}",
                    config={"hidden_size": 64, "number": n},
                    level=0,
                    seed=0,
                    builder="benchmark",
                )
            )
            for n in range(count)
        ]

    def listed(self, run: list[Workload], heirs: list[Workload]) -> Iterator[tuple[Entry, PlanGroup]]:
        """Entries over every workload; a fifth cannot be run at all; each heir has another's kernel key."""
        groups = [_group(workload, workload.hash) for workload in run]
        groups += [_group(workload, run[n % len(run)].hash) for n, workload in enumerate(heirs)]
        others = [PlanGroup(listing=status.outcome(), model_type="unknown") for status in list(ListingStatus)[1:]]
        for rank in range(1, self.entries + 1):
            group = others[rank % len(others)] if rank % 5 == 0 else groups[rank * 7919 % len(groups)]
            name = f"synthetic/model-{rank}" + (HOSTILE[rank % len(HOSTILE)] if rank % 997 == 0 else "")
            downloads = int(1e8 / rank**1.1)
            yield Entry(id=name, rank=rank, downloads=downloads, task=TASKS[rank % len(TASKS)], library="x"), group

    def attempts(self, run: list[Workload], name: str) -> Iterator[AttemptRecord]:
        """Every variant of every workload, in order."""
        for n, workload in enumerate(run):
            drawn = self._drawn()
            for variant in self.policy.variants:
                case = Case(workload=workload.hash, device="neuron", variant=variant)
                yield AttemptRecord(
                    ticket=content_hash([name, case.id]),
                    case=case,
                    kind=AttemptKind.RECORD,
                    findings=self._findings(variant, drawn, n),
                    started=1.7e9 + n,
                    wall_s=1.0 + n % 7 / 10,
                    cpu_s=0.8,
                    peak_rss=400_000_000,
                    node=f"node-{n % 8}",
                    worker=f"worker-{n % 64}",
                    ops_complete=True,
                    record=self._record(variant, drawn, n),
                )

    def _drawn(self) -> list[Cause]:
        """The causes of one workload: none for four in ten, and every cause at least once in all."""
        if self.random.random() < 0.4:
            return []
        drawn = self.random.choices(self.causes, self._heights, k=self.random.choice((1, 1, 1, 2, 2, 3, 5)))
        if (n := next(self._seldom, None)) is not None:
            drawn.append(self.causes[n])
        return drawn

    def _findings(self, variant: Variant, drawn: list[Cause], n: int) -> list[Finding]:
        found: dict[Check, list[Outcome]] = {}
        for cause in drawn:
            if cause.mode in ("", variant.mode.value) and applies(cause.check, variant):
                found.setdefault(cause.check, []).append(cause.outcome)
        return [
            _finding(check, list(dict.fromkeys(found.get(check, ()))), n) for check in Check if applies(check, variant)
        ]

    def _record(self, variant: Variant, drawn: list[Cause], n: int) -> dict[str, Any]:
        """The family's operators, and those the device left to the CPU."""
        body = self._bodies[n % FAMILIES]
        fallen = [
            _use(op, dtype, n, mechanism=1 if cause.outcome.kind is Kind.FALLBACK_NO_KERNEL else 2)
            for cause in drawn
            if cause.check is Check.FALLBACK and cause.mode == variant.mode.value
            for op, _, dtype in [cause.outcome.detail.partition(" ")]
        ]
        return {**body, "ops": [*body["ops"], *fallen]} if fallen else body

    def _body(self, family: int) -> dict[str, Any]:
        ops = [_use(OPS[(family * 13 + n * 7) % len(OPS)], "float32", n) for n in range(40)]
        return {"ops": ops, "family": family, "forced_cpu": [], "memory_peak": 1 << 20}


def _use(op: str, dtype: str, n: int, mechanism: int = 0) -> dict[str, Any]:
    return {
        "op": op,
        "dtype": dtype,
        "placement": "cpu" if mechanism else "native",
        "mechanism": mechanism,
        "reported": True,
        "count": 1 + n % 9,
        "nbytes": 64 * n if mechanism else 0,
        "ns": 1000 * (n % 1000),
        "shapes": [[2, 16, 64], [64, 64 + n % 40]],
        "strides": [[1024, 64, 1], [64 + n % 40, 1]],
    }


def _group(workload: Workload, kernel_key: str) -> PlanGroup:
    return PlanGroup(
        listing=ListingStatus.ELIGIBLE.outcome(),
        kernel_key=kernel_key,
        graph_key=kernel_key,
        workload=workload.hash,
        model_type=workload.spec.family,
        class_name=getattr(workload.spec, "class_name", ""),
    )


def _finding(check: Check, outcomes: list[Outcome], n: int) -> Finding:
    if not outcomes:
        return Finding(check=check, outcome=Outcome(Kind(f"{check.value}:pass")), evidence={"words": "passed"})
    words = f"{outcomes[0].detail} failed for workload {n}" + (HOSTILE[n % len(HOSTILE)] if n % 31 == 0 else "")
    return Finding(
        check=check, outcome=outcomes[0], others=tuple(outcomes[1:]), measure=n % 100 / 7, evidence={"words": words}
    )


def make(database: str, results: int, entries: int, clusters: int) -> dict[str, Any]:
    """Fill a new database, and say what each part cost in CPU seconds."""
    policy = load_policy("gating")
    maker = Maker(entries, clusters, policy)
    count = max(1, round(results / PER_CASE / len(policy.variants)))
    run, heirs = maker.workloads(count + count // 5)[:count], maker.workloads(count + count // 5)[count:]
    engine = open_engine(database, create=True)
    store = Store(engine)
    costs: dict[str, float] = {}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        began = time.process_time()
        value = action()
        costs[name] = round(time.process_time() - began, 2)
        return value

    info = CatalogInfo(name="large", source=Source.SYNTHETIC, sha256="0" * 64, registered=entries, created="")
    listed = maker.listed(run, heirs)
    key = content_hash([results, entries, clusters])
    plan_id = timed("plan", partial(store.save_plan, key, info, {}, chain(run, heirs), listed))
    for name, part in (("older", run[: max(1, count // 10)]), ("newest", run)):
        sweep_id = store.create_sweep(_header(name, plan_id, policy))
        timed(f"{name}: write", partial(_write, store, sweep_id, maker.attempts(part, name)))
        store.finish_sweep(sweep_id, "done", 3600.0, _summary(len(part)))
        timed(f"{name}: conclude", partial(conclude, store, name))
        timed(f"{name}: triage", partial(triaged, engine, name))
    with engine.connect() as db:
        sizes = {row.name: row.attempts for row in queries.sweeps(db)}
    engine.dispose()
    return {"cpu_s": costs, "attempts": sizes, "workloads": count}


def _header(name: str, plan_id: int, policy: Policy) -> SweepHeader:
    build = BuildVector(adapter="neuron", profile="ideal", profile_sha256="0" * 64, shim=name, passes="")
    return SweepHeader(
        name=name,
        plan_id=plan_id,
        build=build,
        device="neuron",
        policy=policy,
        policy_json=policy.to_json(),
        options={},
        seed=0,
        cores=2,
    )


def _summary(planned: int) -> dict[str, Any]:
    return {
        "audit": {"drawn": 300, "disagreed": 0, "bound": 0.01},
        "controls": {"planted": 0, "judged": 0, "caught": 0},
        "withheld": {},
        "planned": planned,
        "reuse": {"spared": 0, "drawn": 0, "disagreed": 0, "disagreeing": []},
    }


def _write(store: Store, sweep_id: int, records: Iterator[AttemptRecord]) -> None:
    while batch := list(islice(records, BATCH)):
        store.write(sweep_id, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=2_000)
    given = parser.parse_args()
    print(json.dumps(make(given.database, given.results, given.entries, given.clusters), indent=2))


if __name__ == "__main__":
    main()
