"""Reproductions: from a failing case of a sweep to a folder with a script, as small as still shows the same cause.

Every candidate is run and judged as any case is, in fresh children, before it is kept: the smallest that shows the
cause key. Where none does, a script is written all the same, and said not to show it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from neuronqa import bundled
from neuronqa.db import clusters, queries
from neuronqa.db.clusters import Failing
from neuronqa.db.occurrences import MESSAGE
from neuronqa.db.queries import SweepRow
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import relaxed
from neuronqa.domain.outcome import Kind, Outcome, Standing
from neuronqa.domain.policy import Policy
from neuronqa.domain.repro import (
    ABOUT_FILE,
    CALLED_FILE,
    LOSS_FILE,
    MODEL_FILE,
    OPERATOR_FILE,
    SCRIPT_FILE,
    Grain,
    Repro,
)
from neuronqa.domain.workload import HfSpec, ModuleSpec, Workload
from neuronqa.errors import BadInput
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.rerun import Bench, bench_of
from neuronqa.triage import scripts
from neuronqa.triage.attribution import TELLING
from neuronqa.triage.keys import Cause
from neuronqa.worker.extracting import extract

SEED: Final = 20_260_101
BUDGET_S: Final = 120.0
PATIENCE: Final = 3.0
_LATE: Final = (
    Kind.BUILD_TIMEOUT,
    Kind.REFERENCE_TIMEOUT,
    Kind.LOAD_TIMEOUT,
    Kind.RUN_TIMEOUT,
    Kind.COMPILE_TIMEOUT,
)
SOURCE_FILE: Final = "source.py"
_MEMBERS: Final = 200
_RAN: Final = frozenset({"record", "alone", "retry", "audit"})
"""Kinds of attempts that ran the case as it is: a probe had operators moved to the CPU."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is to be reproduced."""

    failing: Failing
    workload: Workload
    order: BuildOrder
    policy: Policy
    profile: str
    same_build: bool


def find(db: Connection, row: SweepRow, what: str) -> Failing:
    """The failing case that `what` names: itself, or the plainest of a cluster (its id, or a cause key)."""
    if (what.isdecimal() and len(what) < 19) or ":" in what:
        cluster = clusters.cluster(db, what)
        members = [one for one in clusters.failing(db, row.id, cluster.id, limit=_MEMBERS) if not one.symptom]
        if not members:
            raise BadInput(
                f"cluster {cluster.id} has no case of its own in sweep {row.name}", hint="name another sweep"
            )
        return min(members, key=plainness)
    members = clusters.failing_case(db, row.id, what)
    if not members:
        hint = "give a case's hash as pages and `neuronqa triage show` print it, or a cluster's id"
        raise BadInput(f"no case {what!r:.60} fails in sweep {row.name}", hint=hint)
    return members[0]


def make(db: Connection, row: SweepRow, what: str, folder: Path, budget_s: float = BUDGET_S) -> Repro:
    """Write a reproduction of `what` into `folder`, which must be new or empty. To be called on the main thread.

    Raises BadInput for what cannot be found or written, EnvironmentFault where the device cannot be made.
    """
    failing = find(db, row, what)
    workload = queries.workloads(db, [failing.workload])[failing.workload]
    _claim(folder)
    prepared = prepare(SweepRequest.kept(row.options, None).order)
    subject = Subject(
        failing=failing,
        workload=workload,
        order=prepared.order,
        policy=patient(Policy.from_json(row.policy), failing.outcome),
        profile=row.profile,
        same_build=prepared.vector.hash == row.build_hash,
    )
    made = _smallest(subject, folder, time.monotonic() + budget_s)
    made = replace(made, versions=dict(row.versions))
    (folder / ABOUT_FILE).write_text(json.dumps(made.to_json(), indent=1) + "\n", encoding="utf-8")
    return made


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """What a reproduction did when it was run once more."""

    same: bool
    """Did its cause key appear?"""
    keys: tuple[str, ...]
    seen: tuple[str, ...]
    """Failing outcomes."""

    def to_json(self) -> dict[str, Any]:
        return {"same": self.same, "keys": list(self.keys), "seen": list(self.seen)}


def run(folder: Path, order: BuildOrder, policy: Policy) -> Rerun:
    """Run a reproduction in fresh children on a prepared build. Raises BadInput for a folder that holds none."""
    about = _about(folder)
    with bench_of(order, policy) as bench:
        seen = list(_causes(bench, _workload_of(folder), Variant.parse(about["variant"])))
    keys = tuple(dict.fromkeys(one.key for one in seen))
    return Rerun(same=about["key"] in keys, keys=keys, seen=tuple(dict.fromkeys(str(one.outcome) for one in seen)))


def rerun(folder: Path, row: SweepRow) -> Rerun:
    """The same, as a sweep would run it."""
    policy = patient(Policy.from_json(row.policy), Outcome.parse(_about(folder)["outcome"]))
    return run(folder, prepare(SweepRequest.kept(row.options, None).order).order, policy)


def patient(policy: Policy, outcome: Outcome) -> Policy:
    """The policy with more time, unless time is what ran out: a busier machine must not hide any other failure."""
    if outcome.kind in _LATE:
        return policy
    limits = policy.limits
    return replace(policy, limits=replace(limits, deadline_s=PATIENCE * limits.deadline_s))


def causes(findings: Iterable[Finding]) -> Iterator[Cause]:
    """What a run failed by."""
    for one in findings:
        for outcome in (one.outcome, *one.others):
            if outcome.standing is Standing.FAIL:
                message = str(one.evidence.get("message", ""))[:MESSAGE] if outcome.kind in TELLING else ""
                yield Cause(one.check, outcome, message)


def plainness(one: Failing) -> tuple[bool, str, str]:
    """Orders failing cases: what a person would look at first comes first."""
    return one.attempt_kind.value not in _RAN, str(one.variant.mode), one.case


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadInput("the folder is not empty", where=str(folder), hint="name a new one with --output")
    except OSError as error:
        raise BadInput(f"cannot write there: {error.strerror}", where=str(folder)) from error


def _smallest(subject: Subject, folder: Path, until: float) -> Repro:
    last: Repro | None = None
    with tempfile.TemporaryDirectory(prefix="neuronqa-repro-") as place:
        Path(place).chmod(0o755)
        with bench_of(subject.order, subject.policy) as bench:
            for grain, text in _candidates(subject, Path(place)):
                (Path(place) / SCRIPT_FILE).write_text(text, encoding="utf-8")
                last = _tried(subject, bench, Path(place), grain, text)
                if last.same or time.monotonic() > until:
                    break
        assert last is not None
        _keep(Path(place), folder, last.grain)
    return last


def _candidates(subject: Subject, place: Path) -> Iterator[tuple[Grain, str]]:
    """Scripts, smallest first; the last is always one that can be written."""
    failing, spec = subject.failing, subject.workload.spec
    name, dtype = operator_of(failing.outcome)
    device = subject.order.device
    found = extract(subject.workload, failing.variant, subject.order, name, dtype, place)
    tail = scripts.tail(failing.variant, device)

    def head(what: str) -> str:
        return scripts.head(str(failing.outcome), what, failing.variant, device, subject.profile)

    if OPERATOR_FILE in found:
        called = str(json.loads((place / CALLED_FILE).read_text(encoding="ascii")))
        what = f"{called} as {failing.class_name} calls it"
        yield (
            Grain.OPERATOR,
            scripts.operator(head(what), tail, called, writes=_writes(called)),
        )
    if isinstance(spec, HfSpec) and {MODEL_FILE, LOSS_FILE} <= found:
        own = json.loads((place / LOSS_FILE).read_text(encoding="ascii")) == "own"
        what = f"{spec.class_name} with a shrunken config"
        yield Grain.MODEL, scripts.model(head(what), tail, spec.module, spec.class_name, own_loss=own)
    anyhow = scripts.tail(failing.variant, device, named=False)
    if isinstance(spec, ModuleSpec):
        _copy_source(spec, place)
        arguments = relaxed(spec.arguments)
        yield Grain.FACTORY, scripts.factory(head(spec.factory), anyhow, spec.factory, arguments, spec.seed)
    elif not {MODEL_FILE, LOSS_FILE} <= found:
        (place / "workload.json").write_text(json.dumps(subject.workload.to_json()), encoding="utf-8")
        yield Grain.WORKLOAD, scripts.workload(head(f"{failing.class_name}, built by neuronqa"), anyhow)


def _tried(subject: Subject, bench: Bench, place: Path, grain: Grain, text: str) -> Repro:
    failing = subject.failing
    seen = list(_causes(bench, _workload_of(place), failing.variant))
    return Repro(
        key=failing.key,
        check=failing.check,
        outcome=failing.outcome,
        variant=failing.variant,
        device=subject.order.device,
        profile=subject.profile,
        case=failing.case,
        class_name=failing.class_name,
        grain=grain,
        lines=len(text.splitlines()),
        words=failing.words,
        same=failing.key in {one.key for one in seen},
        seen=tuple(dict.fromkeys(str(one.outcome) for one in seen)),
        same_build=subject.same_build,
    )


def _causes(bench: Bench, workload: Workload, variant: Variant) -> Iterator[Cause]:
    for again in bench.run(workload, [variant]).values():
        yield from causes(again.findings)


def _workload_of(folder: Path) -> Workload:
    script = (folder / SCRIPT_FILE).absolute()
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return Workload(ModuleSpec(source=str(script), source_sha256=digest, factory="make", seed=SEED))


def operator_of(outcome: Outcome) -> tuple[str, str]:
    """`parity:scale(aten::mm float32)`: the operator and the dtype; empty where none is blamed."""
    operator, _, rest = outcome.detail.partition(" ")
    if outcome.kind is Kind.RUN_CRASH:  # SIGSEGV aten::mm
        operator, rest = rest, ""
    return (operator, rest.split(" ")[0]) if operator.startswith("aten::") else ("", "")


def _copy_source(spec: ModuleSpec, place: Path) -> None:
    path = Path(spec.source)
    path = path if path.is_absolute() else bundled.folder("catalogs") / path
    shutil.copyfile(path, place / SOURCE_FILE)


def _keep(place: Path, folder: Path, grain: Grain) -> None:
    """Leave what the script of this grain reads, and nothing else."""
    unread = {OPERATOR_FILE} if grain is not Grain.OPERATOR else {MODEL_FILE, "config.json"}
    for file in place.iterdir():
        if file.is_file() and file.name not in unread | {LOSS_FILE, CALLED_FILE}:
            shutil.copyfile(file, folder / file.name)


def _about(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput("not a folder that `neuronqa repro` wrote", where=str(folder)) from error
    return about


def _writes(name: str) -> bool:
    """`aten::add_.Tensor` writes into its first argument."""
    return name.partition(".")[0].endswith("_")
