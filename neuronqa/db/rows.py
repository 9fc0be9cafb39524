"""Values as rows: how plans, attempts and findings look in the tables."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuronqa.domain.case import AttemptKind, Case
from neuronqa.domain.catalog import Entry
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.ladder import EntryState
from neuronqa.domain.outcome import Standing
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.workload import Workload

Row = dict[str, Any]
MESSAGE_LIMIT = 4000
"""Characters of a message that are searched; all of them are in its evidence."""


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt as it is written: who, what, when, and every finding."""

    ticket: str
    case: Case
    kind: AttemptKind
    findings: Sequence[Finding]
    started: float
    wall_s: float
    cpu_s: float
    peak_rss: int
    node: str = ""
    worker: str = ""
    probe_of: str = ""
    ops_complete: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)
    """For the blob, as it can be told in JSON: exit, operators, graphs, curves."""
    control: ControlVerdict | None = None


@dataclass(frozen=True, kw_only=True)
class ControlVerdict:
    """What a control was meant to show and what was judged."""

    name: str
    guards: str
    expected: str
    judged: str
    caught: bool
    fault: str = ""
    """What was planted, in one text for one fault, whatever the host; empty for a good twin."""


def evidence_key(body: bytes) -> str:
    """The name of a blob."""
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class Bodies:
    """What goes into blobs of a portion of records, each text made once."""

    by_sha256: Mapping[str, bytes]
    names: Mapping[int, str]
    """`id()` of a value -> the sha256 of its text, as long as the records live."""

    @classmethod
    def of(cls, records: Iterable[AttemptRecord]) -> Bodies:
        bodies: dict[str, bytes] = {}
        names: dict[int, str] = {}
        for record in records:
            for value in (record.record, *(finding.evidence for finding in record.findings)):
                if value:
                    body = _body(value)
                    names[id(value)] = evidence_key(body)
                    bodies[names[id(value)]] = body
        return cls(bodies, names)


@dataclass(frozen=True)
class Blobs:
    """Where the bodies of a portion are in the database."""

    ids: Mapping[str, int]
    names: Mapping[int, str]

    def id_of(self, value: Mapping[str, Any]) -> int | None:
        return self.ids[self.names[id(value)]] if value else None


def _body(value: Mapping[str, Any]) -> bytes:
    """JSON of what is nearly always plain already; what is not takes the long way."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        text = canonical_json(value)
    return text.encode("ascii")


def workload_row(workload: Workload) -> Row:
    body = workload.to_json()
    return {
        "hash": workload.hash,
        "kind": workload.kind.value,
        "family": workload.spec.family,
        "class_name": getattr(workload.spec, "class_name", "") or getattr(workload.spec, "factory", ""),
        "spec": body,
    }


def group_row(plan_id: int, group: PlanGroup, workload_ids: Mapping[str, int]) -> Row:
    """Weights are added when every entry has been seen."""
    return {
        "plan_id": plan_id,
        "listing": str(group.listing),
        "kernel_key": group.kernel_key,
        "graph_key": group.graph_key,
        "workload_id": workload_ids.get(group.workload),
        "model_type": group.model_type,
        "class_name": group.class_name,
        "entries": 0,
        "downloads": 0,
    }


def entry_row(plan_id: int, group_id: int, entry: Entry) -> Row:
    return {
        "plan_id": plan_id,
        "rank": entry.rank,
        "group_id": group_id,
        "name": entry.id,
        "revision": entry.revision,
        "downloads": entry.downloads,
        "library": entry.library,
        "task": entry.task,
        "config": entry.config,
    }


def attempt_row(sweep_id: int, record: AttemptRecord, case_ids: Mapping[Case, int], blobs: Blobs) -> Row:
    return {
        "sweep_id": sweep_id,
        "case_id": case_ids[record.case],
        "ticket": record.ticket,
        "kind": record.kind.value,
        "probe_of": record.probe_of or None,
        "started": record.started,
        "wall_s": record.wall_s,
        "cpu_s": record.cpu_s,
        "peak_rss": record.peak_rss,
        "node": record.node[:64],
        "worker": record.worker[:64],
        "ops_complete": record.ops_complete,
        "blob_id": blobs.id_of(record.record),
    }


def carried_row(sweep_id: int, source: Mapping[str, Any], tickets: Mapping[str, str]) -> Row:
    """An attempt taken over from an earlier sweep: the same but for its name, and that it cost nothing here."""
    root = source["probe_of"] or source["ticket"]
    kind = source["kind"]
    row = {name: value for name, value in source.items() if name != "id"}
    return {
        **row,
        "sweep_id": sweep_id,
        "ticket": tickets[root] + source["ticket"].removeprefix(root),
        "probe_of": tickets[root] if source["probe_of"] else None,
        "kind": AttemptKind.REUSED.value if AttemptKind(kind).counts else kind,
        "wall_s": 0.0,
        "cpu_s": 0.0,
    }


def result_row(attempt_id: int, finding: Finding, blobs: Blobs) -> Row:
    measure = finding.measure
    return {
        "attempt_id": attempt_id,
        "check": finding.check.value,
        "kind": finding.outcome.kind.value,
        "detail": finding.outcome.detail,
        "measure": None if measure is None or math.isnan(measure) else measure,
        "blob_id": blobs.id_of(finding.evidence),
    }


def blocker_rows(attempt_id: int, finding: Finding) -> Iterator[Row]:
    if finding.outcome.standing is not Standing.FAIL:
        return
    for position, outcome in enumerate(dict.fromkeys((finding.outcome, *finding.others))):
        yield {
            "attempt_id": attempt_id,
            "check": finding.check.value,
            "position": position,
            "kind": outcome.kind.value,
            "detail": outcome.detail,
        }


def message_row(attempt_id: int, finding: Finding) -> Iterator[Row]:
    """What a failing check says in words, to be searched."""
    words = str(finding.evidence.get("words", ""))
    if words and finding.outcome.standing is Standing.FAIL:
        yield {"attempt_id": attempt_id, "check": finding.check.value, "text": words[:MESSAGE_LIMIT]}


def standing_row(sweep_id: int, group_id: int, state: EntryState) -> Row:
    missed = state.missed
    outcome = missed.outcome if missed else None
    return {
        "sweep_id": sweep_id,
        "group_id": group_id,
        "evidence": state.evidence.value,
        "label": state.label,
        "missed": missed.rung.value if missed else "",
        "kind": outcome.kind.value if outcome else "",
        "detail": outcome.detail if outcome else "",
    }


def control_row(sweep_id: int, attempt_id: int, verdict: ControlVerdict) -> Row:
    return {
        "attempt_id": attempt_id,
        "sweep_id": sweep_id,
        "name": verdict.name,
        "guards": verdict.guards,
        "expected": verdict.expected,
        "judged": verdict.judged,
        "caught": verdict.caught,
        "fault": verdict.fault or None,
    }
