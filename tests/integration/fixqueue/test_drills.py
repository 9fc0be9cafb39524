"""Verification believes true fixes and nothing else: submissions with known answers, in the real sandbox."""

from __future__ import annotations

import pytest

from neuronqa.fixqueue import drill


@pytest.mark.full
def test_a_true_fix_is_accepted_and_its_cheap_imitation_is_not() -> None:
    results = drill.run(drill.drills(["maximum", "wrong-for-not-a-number"]))
    assert [(one.name, one.right) for one in results] == [("wrong-for-not-a-number", True), ("maximum", True)]


@pytest.mark.full
def test_every_cheat_is_stopped_where_it_should_be_and_every_true_fix_accepted() -> None:
    totals = drill.totals(drill.run(drill.drills()))
    assert totals["wrong"] == []
    assert totals["drills"] >= 25
    assert totals["true_fixes"] >= 20
    assert totals["impossible_accepted"] == 0
