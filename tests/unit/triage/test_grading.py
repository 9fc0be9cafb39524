"""B-cubed on examples worked out by hand."""

from __future__ import annotations

import pytest

from neuronqa.triage.grading import grade


@pytest.mark.parametrize(
    ("pairs", "precision", "recall"),
    [
        ([("a", 1), ("a", 1), ("b", 2)], 1.0, 1.0),
        ([("a", 1), ("b", 1)], 0.5, 1.0),
        ([("a", 1), ("a", 2)], 1.0, 0.5),
        ([("a", 1), ("a", 1), ("a", 2), ("b", 2)], 0.75, (2 * 2 / 3 + 1 / 3 + 1) / 4),
    ],
)
def test_precision_counts_strangers_in_a_cluster_and_recall_what_is_missing(
    pairs: list[tuple[str, int]], precision: float, recall: float
) -> None:
    found = grade(pairs)
    assert found.precision == pytest.approx(precision)
    assert found.recall == pytest.approx(recall)
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_nothing_planted_is_no_grade_and_not_a_good_one() -> None:
    assert grade([]).f1 is None
    assert grade([]).to_json()["precision"] is None
