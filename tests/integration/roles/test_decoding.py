"""Generation is teacher-forced: logits are compared step by step, and choices where they are not open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuronqa.checks import choices
from neuronqa.checks.tensors import Yardstick
from neuronqa.domain.outcome import Check, Kind
from neuronqa.worker.decoding import TOKENS
from neuronqa.worker.exchange import read_tensors
from tests.integration.roles.families import small
from tests.integration.roles.played import Stage, family

LOGITS = Yardstick(name="output/step.0", count=8, tolerance=0.01, peak_tolerance=0.05)


@pytest.mark.parametrize("variant", ["eager/fp32/generate", "eager/bf16/generate"])
@pytest.mark.parametrize("name", ["llama", "gpt2", "t5"])
def test_a_family_generates_on_the_cpu_as_on_the_cpu(tmp_path: Path, name: str, variant: str) -> None:
    stage = family(tmp_path, name, variant)
    assert [str(one.outcome) for one in stage.record()] == ["build:pass", "inputs:pass", "reference:pass"]
    assert stage.observe()[Check.PARITY].outcome.kind is Kind.PARITY_PASS
    kept = {name for name in read_tensors(stage.device) if name.startswith(("output/", "token/"))}
    assert kept == {f"{kind}{step}" for step in range(TOKENS + 1) for kind in ("output/step.", "token/")}


def test_a_fault_that_only_decoding_reaches_is_found(tmp_path: Path) -> None:
    stage = family(tmp_path, "llama", "eager/fp32/generate")
    stage.record()
    assert stage.observe(fault={"kind": "scale", "op": "aten::cat"})[Check.PARITY].outcome.kind is not Kind.PARITY_PASS


def test_a_model_without_a_cache_says_so(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "eager/fp32/generate")
    found = stage.record()
    assert found[1].outcome.kind is Kind.INPUTS_ERROR
    assert {str(one.outcome) for one in stage.judge().values()} == {"not-run:blocked(reference)"}


def compared(device: list[int], margin: list[float]) -> tuple[Kind | None, str]:
    oracle = np.asarray([3, 5, 7])
    found = choices.compare("token/0", np.asarray(device), oracle, np.asarray(margin), LOGITS)
    return found.kind, found.note


def test_a_choice_beyond_rounding_must_be_the_oracles() -> None:
    assert compared([3, 5, 7], [1, 1, 1]) == (None, "")
    assert compared([3, 5, 8], [1, 1, 1]) == (Kind.PARITY_SCATTER, "1 of 3 choices differ")


def test_a_choice_within_rounding_is_open_and_counted() -> None:
    kind, note = compared([3, 5, 8], [1, 1, 0.01])
    assert (kind, note) == (None, "1 were open, the oracle's margin being below rounding")
    kind, note = compared([4, 5, 8], [1, 1, 0.01])
    assert kind is Kind.PARITY_SCATTER
    assert note.startswith("1 of 3 choices differ; 1 were open")
