"""A fix queue over a little triaged sweep: reproductions and device builds are said, not made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from neuronqa.db import queries
from neuronqa.db.queries import SweepRow
from neuronqa.db.store import Store
from neuronqa.device.neuron import declared
from neuronqa.domain.build import BuildOrder, BuildVector, Prepared
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.repro import Grain, Repro
from neuronqa.domain.workload import Workload
from neuronqa.fixqueue import basis, service
from neuronqa.fixqueue.service import FixQueue
from neuronqa.triage import repro
from tests.builders import COMPILED, EAGER, but, eligible, entries, passed, said, save_plan, vector, workload
from tests.triaged import both, sweep

OPERATORS = ("aten::one", "aten::two", "aten::three")
NOT_SHOWN = "aten::three"
OVERLAY = """from neuronqa.device.neuron.overlay import kernel
import torch


@kernel("{operator}", dtypes=("float32",))
def fixed(a):
    return torch.neg(torch.neg(a))
"""


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def falling(operators: Sequence[str], variant: Any = EAGER) -> list[Finding]:
    """A case in which these operators ran on the CPU, and nothing else is wrong."""
    if not operators:
        return passed(variant)
    first, *others = (said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, f"{one} float32") for one in operators)
    return but(passed(variant), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, first.outcome.detail,
               others=tuple(one.outcome for one in others)))  # fmt: skip


def models() -> list[Workload]:
    return [workload(name) for name in ("a", "b", "c", "d")]


def plan(engine: Engine) -> int:
    """Four models of 1, 2, 4 and 8 entries."""
    some = models()
    return save_plan(Store(engine), some, entries([(eligible(one), 2**n, 10) for n, one in enumerate(some)]))


def swept(engine: Engine, plan_id: int, name: str, missing: Sequence[str], build: BuildVector | str = "p") -> int:
    """A lacks operator one; b two; c three; d one and two: those of them that are missing."""
    needs = ((0,), (1,), (2,), (0, 1))
    records = []
    for one, wanted in zip(models(), needs, strict=True):
        lacks = [OPERATORS[n] for n in wanted if OPERATORS[n] in missing]
        records += both(one, falling(lacks, EAGER), falling(lacks, COMPILED))
    return sweep(engine, plan_id, name, records, build)


def queue_over(engine: Engine, home: Path, monkeypatch: pytest.MonkeyPatch) -> FixQueue:
    """The queue, where a reproduction of the operator :data:`NOT_SHOWN` does not show its cause."""
    monkeypatch.setattr(repro, "make", _reproduced)
    monkeypatch.setattr(service, "describe", _described)
    monkeypatch.setattr(basis, "prepare", prepared)
    return FixQueue(engine=engine, home=home, clock=Clock())


def prepared(order: BuildOrder) -> Prepared:
    """A build that is named by the kernels its overlays declare."""
    kernels = {op: name for path in order.overlays for op, name in declared.kernels(path).items()}
    return Prepared(order=order, vector=vector(kernels=kernels), seconds=0.0)


def _reproduced(db: Connection, row: SweepRow, what: str, folder: Path, budget_s: float) -> Repro:
    del budget_s
    failing = repro.find(db, row, what)
    folder.mkdir(parents=True)
    made = Repro(
        key=failing.key, check=failing.check, outcome=failing.outcome, variant=failing.variant, device="neuron",
        profile="ideal", case=failing.case, class_name=failing.class_name, grain=Grain.OPERATOR, lines=1,
        words="ran on the CPU", same=NOT_SHOWN not in str(failing.outcome), versions=dict(queries.sweep(db).versions),
    )  # fmt: skip
    (folder / "about.json").write_text(json.dumps(made.to_json()))
    (folder / "repro.py").write_text("print('fails')\n")
    return made


def _described(folder: Path, operator: str) -> None:
    about: dict[str, Any] = {
        "schema": f"{operator}(Tensor self) -> Tensor",
        "overloads": [],
        "meaning": "",
        "call": None,
    }
    (folder / "operator.json").write_text(json.dumps(about))
