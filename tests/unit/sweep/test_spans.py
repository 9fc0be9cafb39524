"""What whoever traces is told of attempts."""

from __future__ import annotations

from typing import Any

from neuronqa.domain.outcome import Check, Kind
from neuronqa.sweep import spans
from tests.builders import COMPILED, EAGER, failed, record, workload


class Tracer:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.ended: list[int] = []

    def start_span(self, name: str, **told: Any) -> Tracer:
        self.started.append({"name": name, **told})
        return self

    def end(self, end_time: int) -> None:
        self.ended.append(end_time)


def test_every_attempt_is_a_span_from_its_start_to_its_end_with_its_first_failure() -> None:
    tracer: Any = Tracer()
    one = record(workload("a"), EAGER)
    other = record(workload("a"), COMPILED, failed(COMPILED, Check.RUN, Kind.RUN_CRASH))
    spans.emit(tracer, [one, other])
    assert [told["attributes"]["neuronqa.variant"] for told in tracer.started] == [str(EAGER), str(COMPILED)]
    assert tracer.started[0]["attributes"]["neuronqa.failure"] == ""
    assert tracer.started[1]["attributes"]["neuronqa.failure"].startswith("run:crash")
    assert tracer.started[0]["start_time"] == int(one.started * 1e9)
    assert tracer.ended[0] == int((one.started + one.wall_s) * 1e9)


def test_nobody_who_did_not_ask_for_it_pays_for_tracing(monkeypatch: Any) -> None:
    monkeypatch.setattr(spans, "find_spec", lambda _name: None)
    assert spans.tracer() is None
