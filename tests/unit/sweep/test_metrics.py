"""What Prometheus is told of a sweep, and that a caller who says nothing holds nobody up."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator

import pytest

from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.driver import Progress
from neuronqa.sweep.metrics import Metrics, exposition
from tests.scripted import Quiet

PROGRESS = Progress(planned=7, done=3, lost=1, failures=Counter({"run": 2, "compile": 1}), workers=4)


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics(Quiet(), 0)
    yield made
    made.close()


def test_every_value_has_a_type_and_a_meaning() -> None:
    lines = exposition(PROGRESS).splitlines()
    told = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    assert told == {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert told == {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert "neuronqa_cases_done_total 3" in lines
    assert 'neuronqa_failing_workloads_total{stage="run"} 2' in lines


def test_a_scrape_is_answered_when_progress_is_shown(metrics: Metrics) -> None:
    read: list[str] = []

    def scrape() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=20) as answer:
            read.append(answer.read().decode())

    caller = threading.Thread(target=scrape)
    caller.start()
    while caller.is_alive():
        metrics.show(PROGRESS)
    assert "neuronqa_cases_planned 7" in read[0].splitlines()


def test_a_caller_that_says_nothing_or_leaves_is_let_go(metrics: Metrics) -> None:
    silent = socket.create_connection(("127.0.0.1", metrics.port))
    socket.create_connection(("127.0.0.1", metrics.port)).close()
    metrics.show(PROGRESS)
    silent.close()
    metrics.show(PROGRESS)


def test_a_port_that_is_taken_is_an_environment_fault(metrics: Metrics) -> None:
    with pytest.raises(EnvironmentFault, match="metrics cannot be served"):
        Metrics(Quiet(), metrics.port)
