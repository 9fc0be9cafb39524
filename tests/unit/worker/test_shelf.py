"""A reference is made once for a workload, dtype and phase, and made again now and then to be sure of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import ReferenceResult
from neuronqa.domain.observation import TENSOR_FILE, Exit, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import InvariantBroken
from neuronqa.worker import folders, shelf
from neuronqa.worker.runner import Reference
from neuronqa.worker.shelf import RECHECK, Shelf

FP32 = Variant.parse("eager/fp32/train")
BF16 = Variant.parse("eager/bf16/train")
WORKLOAD = Workload(ModuleSpec(source="x", source_sha256="0", factory="f"))


class Makers:
    """Counts what it makes; `content` and `kind` say what comes out."""

    def __init__(self) -> None:
        self.made = 0
        self.content: Callable[[], bytes] = lambda: b"numbers"
        self.kind = Kind.REFERENCE_PASS

    def __call__(self, folder: Path) -> Reference:
        self.made += 1
        folder.mkdir()
        (folder / TENSOR_FILE).write_bytes(self.content())
        (folder / "observation.json").write_text(f"made as number {self.made}")
        finding = Finding(check=Check.REFERENCE, outcome=Outcome(self.kind))
        left = Exit(done=True, progress=Progress.DONE, cpu_s=1.5, wall_s=2.5)
        result = ReferenceResult(variant=FP32, findings=(finding,), exit=left)
        return Reference(result, folder, folders.digest(folder), None)


@pytest.fixture
def make() -> Makers:
    return Makers()


@pytest.fixture
def kept(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "references")


def test_a_reference_is_made_once_and_costs_nothing_the_second_time(kept: Shelf, make: Makers) -> None:
    first = kept.reference(WORKLOAD, FP32, 8, make)
    kept.trim()
    second = kept.reference(WORKLOAD, FP32, 8, make)
    assert make.made == 1
    assert (first.folder, first.digest, first.result.findings) == (second.folder, second.digest, second.result.findings)
    assert (first.result.exit.cpu_s, second.result.exit.cpu_s, second.result.exit.wall_s) == (1.5, 0.0, 0.0)
    assert (second.folder / TENSOR_FILE).exists()


def test_another_dtype_or_number_of_steps_is_another_reference(kept: Shelf, make: Makers) -> None:
    for variant, steps in ((FP32, 8), (BF16, 8), (FP32, 1)):
        kept.reference(WORKLOAD, variant, steps, make)
    assert make.made == 3


def test_what_cannot_be_compared_with_is_not_kept(kept: Shelf, make: Makers) -> None:
    make.kind = Kind.REFERENCE_TIMEOUT
    first = kept.reference(WORKLOAD, FP32, 8, make)
    kept.trim()
    assert not first.folder.exists()
    kept.reference(WORKLOAD, FP32, 8, make)
    assert make.made == 2


def test_the_least_recently_used_go_first(kept: Shelf, make: Makers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "ROOM", 2_500_000)
    make.content = lambda: bytes(1_000_000)
    old, new = kept.reference(WORKLOAD, FP32, 8, make), kept.reference(WORKLOAD, BF16, 8, make)
    kept.reference(WORKLOAD, FP32, 8, make)
    newest = kept.reference(WORKLOAD, FP32, 1, make)
    kept.trim()
    assert [one.folder.exists() for one in (old, new, newest)] == [True, False, True]


def test_a_kept_reference_is_made_again_now_and_then(kept: Shelf, make: Makers) -> None:
    for _ in range(RECHECK + 1):
        kept.reference(WORKLOAD, FP32, 8, make)
    assert make.made == 2


def test_a_reference_that_comes_out_differently_is_not_believed(kept: Shelf, make: Makers) -> None:
    make.content = lambda: str(make.made).encode()
    for _ in range(RECHECK):
        kept.reference(WORKLOAD, FP32, 8, make)
    with pytest.raises(InvariantBroken, match="came out differently"):
        kept.reference(WORKLOAD, FP32, 8, make)
