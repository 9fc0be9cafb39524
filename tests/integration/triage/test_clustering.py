"""Faults planted into real models, and whether their causes are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmark.certification import go_on
from tests.benchmark.clustering import assignments, summary

AMPLE_S = 7200.0


@pytest.mark.full
def test_planted_causes_are_told_apart(tmp_path: Path) -> None:
    trials = go_on(tmp_path / "trials.jsonl", assignments(44), AMPLE_S, 2, "ideal")
    found = summary(trials)
    single, mixed = found["single"], found["mixed"]
    assert single["faults"] >= 40
    assert single["models"] >= 40
    assert single["f1"] >= 0.98, single["spoilt"]
    assert mixed["f1"] >= 0.95, mixed["spoilt"]
