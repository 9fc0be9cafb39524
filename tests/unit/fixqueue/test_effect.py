"""What a submission did to a case."""

from __future__ import annotations

from typing import Any

import pytest

from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit, GraphUse, Progress
from neuronqa.domain.outcome import Check, Outcome
from neuronqa.fixqueue import draw
from neuronqa.fixqueue.effect import Ran, effect, shown
from neuronqa.fixqueue.reason import Reason

GONE = "fallback:no-kernel(aten::maximum float32)"
PASS = {Check.RUN: "run:pass", Check.FALLBACK: "fallback:pass", Check.PARITY: "parity:pass"}


def ran(cpu_s: float = 0.2, graph: GraphUse | None = None, **outcomes: str) -> Ran:
    said = {**PASS, **{Check(name): text for name, text in outcomes.items()}}
    findings = tuple(Finding(check=check, outcome=Outcome.parse(text)) for check, text in said.items())
    return Ran(findings=findings, exit=Exit(done=True, progress=Progress.DONE, cpu_s=cpu_s), graph=graph)


BEFORE = ran(fallback=GONE)


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (ran(), None),
        (ran(fallback=GONE), Reason.FALLS_BACK),
        (ran(fallback="fallback:no-kernel(aten::sort float32)"), Reason.FALLS_BACK),
        (ran(parity="parity:scale"), Reason.VALUES),
        (ran(run="run:crash(SIGSEGV)"), Reason.CRASHES),
        (ran(run="run:timeout"), Reason.HANGS),
        (ran(run="run:oom"), Reason.OUT_OF_MEMORY),
        (ran(run="run:error"), Reason.RAISES),
        (ran(parity="not-run:blocked"), Reason.SKIPS),
        (ran(parity="inconclusive:no-power"), Reason.SKIPS),
        (ran(cpu_s=9.0), Reason.TOO_SLOW),
        (ran(graph=GraphUse(graphs=1, ops=(1,), recompiles=("x",))), Reason.RECOMPILES),
    ],
)
def test_a_fix_takes_away_its_failure_and_nothing_else(after: Ran, reason: Reason | None) -> None:
    assert effect(BEFORE, after, (GONE,)) is reason


def test_what_failed_before_may_go_on_failing_unless_it_is_the_item() -> None:
    other = "parity:scale(aten::bmm)"
    assert effect(ran(fallback=GONE, parity=other), ran(parity=other), (GONE,)) is None
    assert effect(ran(parity=other), ran(parity=other), (other,)) is Reason.STILL_FAILS


def test_a_case_that_passed_must_pass() -> None:
    assert effect(ran(), ran()) is None
    assert effect(ran(), ran(parity="parity:nan")) is Reason.BREAKS_ANOTHER


@pytest.mark.parametrize(
    ("run", "outcomes", "said"),
    [
        (BEFORE, (GONE,), {GONE}),
        (BEFORE, ("fallback:no-kernel",), {GONE}),
        (BEFORE, ("parity:nan",), set()),
        (BEFORE, (), {GONE}),
        (ran(), (), set()),
        (ran(fallback=GONE, parity="parity:nan"), (GONE,), {GONE}),
    ],
)
def test_a_failure_is_recognised_by_its_outcome_or_else_its_kind(
    run: Ran, outcomes: tuple[str, ...], said: set[str]
) -> None:
    assert shown(run, outcomes) == said


def test_a_failure_that_the_item_names_less_exactly_than_the_run_must_go_too() -> None:
    assert effect(BEFORE, BEFORE, shown(BEFORE, ("fallback:no-kernel",))) is Reason.FALLS_BACK


def test_a_draw_depends_on_the_secret_and_on_the_submission() -> None:
    def one(secret: bytes, sha256: str) -> list[Any]:
        return draw.drawn(range(100), 9, secret, sha256, "siblings")

    assert one(b"a", "x") == one(b"a", "x")
    assert len({tuple(one(secret, sha256)) for secret in (b"a", b"b") for sha256 in "xy"}) == 4
    assert sorted(draw.drawn(range(3), 9, b"a", "x", "siblings")) == [0, 1, 2]
