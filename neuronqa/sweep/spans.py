"""A span for every attempt, for whoever traces: `neuronqa[otel]` and `opentelemetry-instrument neuronqa ...`.

Where spans go is said in OpenTelemetry's own way, by OTEL_* variables. Controls are not told from other attempts.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from neuronqa.db.rows import AttemptRecord
from neuronqa.domain.outcome import Standing

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_NS: Final = 1_000_000_000


def tracer() -> Tracer | None:
    """Of whoever set one up; None where nothing could have."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return None
    from opentelemetry import trace

    return trace.get_tracer("neuronqa")


def emit(tracer: Tracer, records: Iterable[AttemptRecord]) -> None:
    """Tell of attempts that ended, each with when it ran, where, and what first failed."""
    for record in records:
        failing = (str(f.outcome) for f in record.findings if f.outcome.standing is Standing.FAIL)
        span = tracer.start_span(
            "attempt",
            start_time=int(record.started * _NS),
            attributes={
                "neuronqa.workload": record.case.workload,
                "neuronqa.variant": str(record.case.variant),
                "neuronqa.device": record.case.device,
                "neuronqa.kind": record.kind.value,
                "neuronqa.failure": next(failing, ""),
                "neuronqa.cpu_s": record.cpu_s,
                "host.name": record.node,
            },
        )
        span.end(end_time=int((record.started + record.wall_s) * _NS))
