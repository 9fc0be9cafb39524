"""The simulated device below real zygotes: a warm one changes nothing but the cost, and a crash is looked behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.job import AttemptResult, Job, JobResult, Ticket
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.workload import Workload
from neuronqa.worker.actor import CaseActor, outfit
from neuronqa.workload.planner import plan_config

CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}


@pytest.fixture(scope="module")
def order() -> BuildOrder:
    return prepare(BuildOrder(device="neuron", profile="ideal")).order


@pytest.fixture(scope="module")
def workload() -> Workload:
    planned = plan_config(json.dumps(CONFIG)).workload
    assert planned is not None
    return planned


@pytest.fixture(scope="module")
def actor() -> Iterator[CaseActor]:
    actor = CaseActor("neuron")
    actor.ready()
    yield actor
    actor.close()


def run(actor: CaseActor, workload: Workload, *tickets: Ticket, deadline_s: float = 120.0) -> JobResult:
    limits = Limits(deadline_s=deadline_s)
    (result,) = actor.run([Job(workload=workload, tickets=tickets, thresholds=Thresholds(), limits=limits)])
    assert not result.lost
    return result


def ticket(order: BuildOrder, variant: str, **fault: Any) -> Ticket:
    return Ticket(id=variant, variant=Variant.parse(variant), order=replace(order, fault=fault or None))


def kinds(attempt: AttemptResult) -> dict[Check, Kind]:
    return {finding.check: finding.outcome.kind for finding in attempt.findings}


def test_a_warm_zygote_changes_nothing_but_the_cost(actor: CaseActor, order: BuildOrder, workload: Workload) -> None:
    """Compiled and trained below a zygote that has compiled before, twice, and below one that has not."""
    cold = CaseActor(settings=replace(outfit("neuron"), warm=""))
    results = [run(one, workload, ticket(order, "compile/fp32/train")) for one in (cold, actor, actor)]
    cold.close()
    seen = [facts(attempt) for result in results for attempt in result.attempts]
    assert seen[0] == seen[1] == seen[2]
    assert set(kinds(results[0].attempts[0]).values()) <= {kind for kind in Kind if kind.reason == "pass"}
    assert results[0].attempts[0].graph is not None
    assert results[0].attempts[0].graph.backend_calls == 1


TIMED = (Check.RUN, Check.COMPILE)
"""The measure of these checks is a time."""


def facts(attempt: AttemptResult) -> dict[str, Any]:
    """All that was found but times."""
    assert attempt.graph is not None
    return {
        "outcomes": [(finding.check, finding.outcome, finding.others) for finding in attempt.findings],
        "measures": [finding.measure for finding in attempt.findings if finding.check not in TIMED],
        "curve": attempt.curve,
        "ops": [(op.op, op.dtype, op.placement, op.count) for op in attempt.ops],
        "graph": replace(attempt.graph, compile_s=0.0, first_step_s=0.0, steady_step_s=0.0),
    }


def test_a_reference_made_again_is_the_same_bit_for_bit(
    actor: CaseActor, order: BuildOrder, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What allows one to be kept; the actor raises if it is not so."""
    monkeypatch.setattr("neuronqa.worker.shelf.RECHECK", 1)
    for variant in ("eager/fp32/train", "eager/bf16/train"):
        for _ in range(2):
            assert run(actor, workload, ticket(order, variant)).references[0].exit.done


def test_a_crash_in_an_operator_is_looked_behind(actor: CaseActor, order: BuildOrder, workload: Workload) -> None:
    result = run(actor, workload, ticket(order, "eager/fp32/train", kind="abort"), ticket(order, "eager/fp32/infer"))
    crash, *probes, neighbour = result.attempts
    assert kinds(crash)[Check.RUN] is Kind.RUN_CRASH
    assert (crash.exit.signal, crash.exit.done) == ("SIGABRT", False)
    assert crash.exit.last_op.startswith("aten::")
    assert [probe.probe_of for probe in probes] == [crash.ticket] * len(probes)
    assert probes[0].forced_cpu == (crash.exit.last_op,)
    assert probes[-1].exit.done
    assert kinds(neighbour)[Check.RUN] is Kind.RUN_PASS


def test_a_hang_in_a_kernel_is_a_timeout_in_that_operator(
    actor: CaseActor, order: BuildOrder, workload: Workload
) -> None:
    result = run(actor, workload, ticket(order, "eager/fp32/infer", kind="hang"), deadline_s=6.0)
    (attempt,) = result.attempts
    assert kinds(attempt)[Check.RUN] is Kind.RUN_TIMEOUT
    assert attempt.exit.last_op.startswith("aten::")
    assert "modeling_bert.py" in attempt.exit.stack
