"""Another device's results beside parity: figures, and no verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuronqa.checks import parity
from neuronqa.checks.seen import Second
from tests.unit.checks.made import Arrays, device, right, seen

NAME = "output/logits"


def judged(arrays: Arrays, others: Arrays | None) -> tuple[str, dict[str, object] | None]:
    second = None if others is None else Second(device="cuda", arrays=others)
    found = parity.judge(replace(seen(device(arrays), arrays), second=second))
    return str(found.outcome), found.evidence.get("second_reference")


def test_where_none_was_recorded_nothing_is_said() -> None:
    assert judged(right(7), None) == ("parity:pass", None)


def test_a_device_as_good_as_the_other_is_nowhere_further_off() -> None:
    outcome, said = judged(right(7), right(8))
    assert said is not None
    assert (outcome, said["device"], said["compared"], said["further"]) == ("parity:pass", "cuda", 6, 0)


def test_a_tensor_that_the_other_device_gets_better_is_named_and_parity_is_what_it_was() -> None:
    arrays = right(7)
    arrays[NAME] = arrays[NAME] * np.float32(1.01)
    outcome, said = judged(arrays, right(8))
    assert outcome == judged(arrays, None)[0]
    assert said is not None
    assert said["further"] == 1
    assert [one["tensor"] for one in said["tensors"]] == [NAME]  # type: ignore[attr-defined]


def test_a_tensor_that_both_get_wrong_is_not_further_off_and_still_wrong() -> None:
    arrays, others = right(7), right(8)
    arrays[NAME], others[NAME] = arrays[NAME] * np.float32(1.01), others[NAME] * np.float32(1.01)
    outcome, said = judged(arrays, others)
    assert said is not None
    assert said["further"] == 0
    assert outcome == "parity:scale(output)"


def test_what_the_other_device_lacks_or_broke_is_not_compared() -> None:
    others = right(8)
    del others["loss"]
    others[NAME] = others[NAME] * np.nan
    _, said = judged(right(7), others)
    assert said is not None
    assert said["compared"] == 4
