"""The JSON Schema of a report: what `neuronqa report --format json` promises. A test validates real reports by it."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.domain.catalog import Source
from neuronqa.domain.cluster import State
from neuronqa.domain.ladder import Evidence
from neuronqa.domain.outcome import AtFault, Check, Rung

TEXT: Final = {"type": "string"}
COUNT: Final = {"type": "integer", "minimum": 0}
SHARE: Final = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
NUMBER: Final = {"type": "number"}
FLAG: Final = {"type": "boolean"}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = sorted(set(properties) - set(optional))
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _map(of: Any, keys: Any = None) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "object", "additionalProperties": of}
    return {**body, "propertyNames": keys} if keys else body


def _list(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _one_of(words: Any) -> dict[str, Any]:
    return {"enum": [word.value for word in words]}


def _or_null(what: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [what, {"type": "null"}]}


_GATE: Final = _object(
    {
        "passed": COUNT,
        "failed": COUNT,
        "not_run": COUNT,
        "registered": COUNT,
        "low": SHARE,
        "high": SHARE,
        "withheld": TEXT,
    },
    ("withheld",),
)
_CAUSE: Final = _object(
    {
        "cluster": {"type": ["integer", "null"]},
        "key": {"type": "string", "pattern": "^ck[0-9]+:[0-9a-f]+$"},
        "state": _one_of(State),
        "check": _one_of(Check),
        "rung": _one_of(Rung),
        "outcome": TEXT,
        "at_fault": _one_of(AtFault),
        "assignee": TEXT,
        "workloads": COUNT,
        "cases": COUNT,
        "entries": COUNT,
        "downloads": COUNT,
        "sole_entries": COUNT,
        "place": COUNT,
        "unlocked_entries": COUNT,
        "example_attempt": COUNT,
    }
)
_WAIVER: Final = _object(
    {"cluster": COUNT, "outcome": TEXT, "owner": TEXT, "reason": TEXT, "expires": NUMBER, "entries": COUNT}
)
_BESIDE: Final = _object(
    {
        "what": TEXT,
        "published": NUMBER,
        "here": NUMBER,
        "error": {"type": ["number", "null"]},
        "unit": TEXT,
        "source": TEXT,
        "modelled": FLAG,
    }
)
_STEP: Final = _object({"cluster": COUNT, "entries": COUNT, "entries_high": COUNT, "downloads": COUNT})
_RUN: Final = _object({"command": TEXT, "why": TEXT, "expected_cpu_s": {"type": ["number", "null"]}})
_GRADE: Final = _object(
    {"items": COUNT, "faults": COUNT, "clusters": COUNT, "precision": SHARE, "recall": SHARE, "f1": SHARE}
)
_GATES: Final = _map(_GATE, _one_of(Rung))
_NONE: Final = {"type": "object", "maxProperties": 0}

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "NeuronQA report",
    **_object(
        {
            "schema_version": {"const": 1},
            "sweep": TEXT,
            "state": TEXT,
            "catalog": _object({"name": TEXT, "source": _one_of(Source), "sha256": TEXT, "registered": COUNT}),
            "policy": _object({"name": TEXT, "sha256": TEXT, "partial": FLAG}),
            "device": _object({"name": TEXT, "profile": TEXT, "build": TEXT}),
            "entries": _map(COUNT),
            "gates": _GATES,
            "gates_by_downloads": _GATES,
            "gates_by_workloads": _GATES,
            "sampled": _or_null(_object({"of": TEXT, "drawn": COUNT, "low": SHARE, "high": SHARE})),
            "at_fault": _map(COUNT, _one_of(AtFault)),
            "evidence": _map(COUNT, _one_of(Evidence)),
            "flattering": _map(SHARE),
            "controls": _object({"planted": COUNT, "judged": COUNT, "caught": COUNT}),
            "audit": _object({"drawn": COUNT, "disagreed": COUNT, "bound": SHARE}),
            "reuse": _object({"spared": COUNT, "drawn": COUNT, "disagreed": COUNT}),
            "workloads": _object({"planned": COUNT, "executed": COUNT, "complete": COUNT, "inherited": COUNT}),
            "attempts": COUNT,
            "busy_s": NUMBER,
            "wall_s": NUMBER,
            "cores": COUNT,
            "database": TEXT,
            "causes": _list(_CAUSE),
            "cause_count": COUNT,
            "waivers": _list(_WAIVER),
            "grade": {"anyOf": [_GRADE, _NONE]},
            "unlock": {
                "anyOf": [
                    _object(
                        {
                            "curve": _list(_STEP),
                            "best": _list(_object({"clusters": _list(COUNT), "entries": COUNT})),
                        }
                    ),
                    _NONE,
                ]
            },
            "beside": _list(_BESIDE),
            "verdicts_are_for": TEXT,
            "verdict": _or_null(
                _object(
                    {
                        "answer": {"enum": ["ship", "do not ship", "cannot tell"]},
                        "reasons": _list(TEXT),
                        "runs": _list(_RUN),
                    }
                )
            ),
        }
    ),
}
