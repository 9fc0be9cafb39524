"""What a sweep makes of a cluster, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from neuronqa.domain.cluster import State
from neuronqa.triage.lifecycle import STALE_AFTER, Sighting, born, step, step_again

S = State


def sighting(**values: Any) -> Sighting:
    return Sighting(**values)


TABLE: list[tuple[State, dict[str, Any], State]] = [
    (S.CANDIDATE, {"cases": 1}, S.ONGOING),
    (S.NEW, {"cases": 3}, S.ONGOING),
    (S.ONGOING, {"cases": 3}, S.ONGOING),
    (S.ONGOING, {"cases": 3, "entries": 50, "entries_before": 20}, S.ESCALATING),
    (S.ONGOING, {"cases": 3, "entries": 4, "entries_before": 2}, S.ONGOING),
    (S.ONGOING, {"cases": 3, "entries": 50, "entries_before": None}, S.ONGOING),
    (S.ESCALATING, {"cases": 3, "entries": 50, "entries_before": 50}, S.ONGOING),
    (S.FIXED, {"cases": 1, "another_build": True}, S.REGRESSED),
    (S.FIXED, {"cases": 1, "fixing_build": True}, S.ONGOING),
    (S.LANDED, {"cases": 1, "another_build": True}, S.REGRESSED),
    (S.LANDED, {"cases": 1}, S.LANDED),
    (S.FIX_PENDING, {"cases": 1}, S.FIX_PENDING),
    (S.SHIFTED, {"cases": 1}, S.ONGOING),
    (S.MASKED, {"cases": 1}, S.ONGOING),
    (S.STALE, {"cases": 1}, S.ONGOING),
    (S.ONGOING, {"passed": 5, "another_build": True}, S.FIXED),
    (S.ONGOING, {"passed": 5}, S.ONGOING),
    (S.ONGOING, {"passed": 5, "another_build": True, "trusted": False}, S.ONGOING),
    (S.ONGOING, {"passed": 5, "not_run": 1, "another_build": True}, S.ONGOING),
    (S.ONGOING, {"passed": 5, "elsewhere": 1, "another_build": True}, S.SHIFTED),
    (S.ONGOING, {"passed": 5, "hidden": 1, "another_build": True}, S.MASKED),
    (S.ONGOING, {"elsewhere": 1, "hidden": 1, "another_build": True}, S.MASKED),
    (S.MASKED, {"passed": 5, "another_build": True}, S.FIXED),
    (S.LANDED, {"passed": 5, "another_build": True}, S.FIXED),
    (S.REGRESSED, {"passed": 5, "another_build": True}, S.FIXED),
    (S.FIXED, {"passed": 5, "another_build": True}, S.FIXED),
    (S.ONGOING, {"not_run": 5, "unseen": STALE_AFTER - 1}, S.STALE),
    (S.ONGOING, {"not_run": 5, "unseen": STALE_AFTER - 2}, S.ONGOING),
    (S.MUTED, {"cases": 5, "waived": True}, S.MUTED),
    (S.MUTED, {"passed": 5, "another_build": True, "waived": True}, S.MUTED),
    (S.MUTED, {"cases": 5}, S.ONGOING),
    (S.MUTED, {"passed": 5, "another_build": True}, S.FIXED),
    (S.EXPECTED, {"cases": 5}, S.EXPECTED),
    (S.INVALID, {"cases": 5}, S.INVALID),
    (S.DUPLICATE, {"cases": 5}, S.DUPLICATE),
]


@pytest.mark.parametrize(("state", "values", "after"), TABLE)
def test_a_cluster_moves_only_by_what_was_shown(state: State, values: dict[str, Any], after: State) -> None:
    moved, why = step(state, sighting(**values))
    assert moved is after
    assert bool(why) or moved is state, "a move says why"


@pytest.mark.parametrize("state", list(State))
def test_the_same_build_again_never_fixes_or_regresses(state: State) -> None:
    for seen in (sighting(cases=4, attempts=4), sighting(passed=4), sighting()):
        assert step(state, seen)[0] not in {State.FIXED, State.REGRESSED} - {state} or state is State.FIXED


@pytest.mark.parametrize(
    ("cases", "attempts", "state"), [(1, 1, S.CANDIDATE), (2, 2, S.NEW), (1, 2, S.NEW), (0, 0, S.CANDIDATE)]
)
def test_one_attempt_at_one_case_is_a_candidate(cases: int, attempts: int, state: State) -> None:
    assert born(sighting(cases=cases, attempts=attempts)) is state


def test_a_sweep_that_goes_on_may_see_a_candidate_more_often() -> None:
    assert step_again(State.CANDIDATE, sighting(cases=2, attempts=2))[0] is State.NEW
    assert step_again(State.CANDIDATE, sighting(cases=1, attempts=1))[0] is State.CANDIDATE
    assert step_again(State.FIXED, sighting(cases=2, attempts=2))[0] is State.FIXED
