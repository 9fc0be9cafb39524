"""Ship, do not ship, or cannot tell: what a gate and a baseline come to, why, and what would decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from neuronqa.domain.change import Change
from neuronqa.domain.ladder import Gate
from neuronqa.domain.outcome import Rung
from neuronqa.errors import ExitCode
from neuronqa.report.compare import Comparison
from neuronqa.report.value import Report
from neuronqa.sweep.policies import GateExpression

NAMED: Final = 3


class Answer(StrEnum):
    """The three answers there are."""

    SHIP = "ship"
    DO_NOT_SHIP = "do not ship"
    CANNOT_TELL = "cannot tell"

    @property
    def exit_code(self) -> ExitCode:
        match self:
            case Answer.SHIP:
                return ExitCode.DONE
            case Answer.DO_NOT_SHIP:
                return ExitCode.GATE_MISSED
            case Answer.CANNOT_TELL:
                return ExitCode.CANNOT_TELL


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """A workload that was not run: what it stands for, and what it would cost."""

    workload: str
    entries: int
    expected_s: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """Something to run that would decide, and what it is for."""

    command: str
    why: str
    expected_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer with its reasons; where nobody can tell, the cheapest runs that would."""

    answer: Answer
    reasons: tuple[str, ...]
    runs: tuple[Run, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": self.answer.value,
            "reasons": list(self.reasons),
            "runs": [{"command": run.command, "why": run.why, "expected_cpu_s": run.expected_s} for run in self.runs],
        }


def judge(
    report: Report,
    gate: GateExpression | None,
    comparison: Comparison | None,
    outstanding: Sequence[Outstanding],
) -> Verdict:
    """A failure that was shown outweighs everything; then what nobody knows; only what was shown to hold ships.

    Waived failures count as failing in the gate; a waived cause is no regression that stops a build by itself.
    """
    worst: list[tuple[Answer, str]] = []
    runs: list[Run] = []
    for rung, floor in gate.floors if gate else ():
        answer, why = _clause(next(g for g in report.gates if g.rung is rung), floor, report)
        worst.append((answer, why))
        if answer is Answer.CANNOT_TELL:
            runs += _deciding(report, rung, floor, outstanding)
    if comparison is not None:
        worst.append(_against(comparison))
        runs += _confirming(comparison)
    if report.partial:
        worst.append((Answer.CANNOT_TELL, "the sweep was narrowed: required variants were not asked for"))
    if not worst:
        worst.append((Answer.CANNOT_TELL, "nothing was asked: give --gate or --baseline"))
    answers = {answer for answer, _ in worst}
    order = (Answer.DO_NOT_SHIP, Answer.CANNOT_TELL, Answer.SHIP)
    answer = next(one for one in order if one in answers)
    return Verdict(answer=answer, reasons=tuple(why for _, why in worst), runs=_distinct(runs))


def _clause(gate: Gate, floor: float, report: Report) -> tuple[Answer, str]:
    name = f"{gate.rung.value} >= {floor:.2%}"
    if gate.low is None or gate.high is None:
        why = next((why for rung, why in report.withheld.items() if rung.height <= gate.rung.height), "withheld")
        return Answer.CANNOT_TELL, f"{name}: the rate is withheld, for {why}"
    shown = f"shown is [{gate.low:.2%}, {gate.high:.2%}] of {gate.registered:,}"
    if gate.high < floor:
        return Answer.DO_NOT_SHIP, f"{name} cannot hold any more: {shown}"
    if gate.low < floor:
        return Answer.CANNOT_TELL, f"{name} is open: {shown}"
    return Answer.SHIP, f"{name} holds: {shown}"


def _against(comparison: Comparison) -> tuple[Answer, str]:
    changed = comparison.counts
    regressed = [line for line in comparison.lines if line.change is Change.REGRESSED and not line.waived]
    unknown = changed[Change.NOT_RUN] + changed[Change.GONE]
    named = ", ".join(line.name for line in regressed[:NAMED])
    if regressed:
        more = f" and {len(regressed) - NAMED:,} more" if len(regressed) > NAMED else ""
        return Answer.DO_NOT_SHIP, f"{len(regressed):,} entries regressed against {comparison.a.name}: {named}{more}"
    if unknown:
        return Answer.CANNOT_TELL, f"{unknown:,} entries known in {comparison.a.name} were not run or are gone"
    return Answer.SHIP, f"0 entries regressed against {comparison.a.name}, and none went unseen"


def _deciding(report: Report, rung: Rung, floor: float, outstanding: Sequence[Outstanding]) -> list[Run]:
    """The cheapest workloads that could lift the low end over the floor, or pull the high end below it."""
    gate = next(g for g in report.gates if g.rung is rung)
    if gate.low is None or gate.high is None:
        return [Run(command=f"neuronqa sweep --resume {report.sweep}", why="judge the controls again")]
    lack = math.ceil(floor * gate.registered - gate.low * gate.registered)
    spare = math.floor(gate.high * gate.registered - floor * gate.registered) + 1
    order = sorted(outstanding, key=lambda one: (-one.entries / max(one.expected_s, 1e-9), one.workload))
    taken, entries, cost = 0, 0, 0.0
    for one in order:
        if entries >= min(lack, spare):
            break
        taken, entries, cost = taken + 1, entries + one.entries, cost + one.expected_s
    if entries < min(lack, spare):
        why = f"{rung.value}: what was not run cannot decide; only a tighter audit of inherited verdicts can"
        return [Run(command=f"neuronqa sweep --resume {report.sweep}", why=why)]
    why = f"{rung.value}: {taken:,} more workloads stand for {entries:,} entries, about {cost:,.0f} CPU s"
    return [Run(command=f"neuronqa sweep --resume {report.sweep}", why=why, expected_s=cost)]


def _confirming(comparison: Comparison) -> list[Run]:
    if not comparison.counts[Change.REGRESSED]:
        return []
    command = f"neuronqa compare {comparison.a.name} {comparison.b.name} --confirm 3"
    return [Run(command=command, why="run every regressed case alone, equally often on both builds")]


def _distinct(runs: Sequence[Run]) -> tuple[Run, ...]:
    cheapest = sorted(runs, key=lambda run: (run.expected_s is None, run.expected_s or 0.0))
    return tuple({(run.command, run.why): run for run in cheapest}.values())
