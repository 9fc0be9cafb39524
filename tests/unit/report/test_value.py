"""What a report says in words."""

from __future__ import annotations

import pytest

from neuronqa.report.value import Controls


@pytest.mark.parametrize(
    ("controls", "said"),
    [
        (Controls(planted=19, judged=19, caught=19), "19 of 19 caught"),
        (Controls(planted=19, judged=9, caught=9), "9 of 19 caught, 10 not judged"),
        (Controls(planted=19, judged=19, caught=18), "18 of 19 caught, 1 missed"),
        (Controls(planted=3, judged=2, caught=1), "1 of 3 caught, 1 missed, 1 not judged"),
    ],
)
def test_a_control_that_was_not_reached_is_not_called_missed(controls: Controls, said: str) -> None:
    assert str(controls) == said
