"""A judge that fails is replaced, and its failure is never a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neuronqa.domain.observation import Exit, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.worker.judging import Judge, JudgeFailed

LEFT = Exit(done=True, progress=Progress.DONE)
REPLY = {
    "check": "run",
    "outcome": "run:crash(SIGSEGV)",
    "others": ["run:exit"],
    "measure": None,
    "evidence": {"words": "it crashed"},
}
ANSWER = f"print({json.dumps({'findings': [REPLY]})!r}, flush=True)"

Maker = Callable[..., Judge]


@pytest.fixture
def make() -> Iterator[Maker]:
    judges: list[Judge] = []

    def made(script: str, patience_s: float = 20.0) -> Judge:
        judges.append(Judge(("-c", script), patience_s))
        return judges[-1]

    yield made
    for judge in judges:
        judge.close()


def ask(judge: Judge) -> Outcome:
    (finding,) = judge.reference(Path("/nowhere"), LEFT)
    assert finding.check is Check.RUN
    assert finding.others == (Outcome(Kind.RUN_EXIT),)
    assert finding.evidence == {"words": "it crashed"}
    return finding.outcome


def once(flag: Path, fault: str) -> str:
    """A judge that has one fault in its life."""
    return f"""
import os, pathlib, sys, time
flag = pathlib.Path({str(flag)!r})
for line in sys.stdin:
    if not flag.exists():
        flag.touch()
        {fault}
    {ANSWER}
"""


def test_an_answer_is_read(make: Maker) -> None:
    judge = make(f"import sys\nfor line in sys.stdin: {ANSWER}")
    assert ask(judge) == Outcome(Kind.RUN_CRASH, "SIGSEGV")
    assert ask(judge) == Outcome(Kind.RUN_CRASH, "SIGSEGV")


def test_a_judge_that_dies_once_is_asked_again(make: Maker, tmp_path: Path) -> None:
    flag = tmp_path / "died"
    assert ask(make(once(flag, "os._exit(1)"))) == Outcome(Kind.RUN_CRASH, "SIGSEGV")


def test_a_judge_that_always_dies_is_told_with_its_last_words(make: Maker) -> None:
    with pytest.raises(JudgeFailed, match=r"died twice.*no judge today"):
        ask(make("import sys; sys.stdin.readline(); sys.exit('no judge today')"))


def test_a_judge_that_hangs_is_replaced(make: Maker, tmp_path: Path) -> None:
    flag = tmp_path / "hung"
    judge = make(once(flag, "time.sleep(600)"), patience_s=0.5)
    with pytest.raises(JudgeFailed, match="did not answer"):
        ask(judge)
    assert ask(judge) == Outcome(Kind.RUN_CRASH, "SIGSEGV")


@pytest.mark.parametrize(
    "reply",
    [
        "nonsense",
        "[]",
        '{"error": "no such file"}',
        '{"findings": [{"check": "run", "outcome": "run:unheard-of", "measure": null, "evidence": {}}]}',
        '{"findings": [{"check": "run"}]}',
    ],
)
def test_an_unreadable_answer_is_a_failure_of_the_judge(make: Maker, reply: str) -> None:
    with pytest.raises(JudgeFailed):
        ask(make(f"import sys\nfor line in sys.stdin: print({reply!r}, flush=True)"))
