"""Findings to standings: who inherits from whom, what was narrowed away, and what the audit proves."""

import math
from collections.abc import Mapping, Sequence

import pytest

from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.ladder import Evidence, Findings
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung, Standing
from neuronqa.domain.plan import PlanGroup, PlannedGroup
from neuronqa.sweep.audit import AUDIT_LIMIT, draw
from neuronqa.sweep.policies import Narrowing
from neuronqa.sweep.settle import Audit, audit, narrowed_findings, settle, upper_bound
from neuronqa.sweep.standings import ran_for
from tests.builders import COMPILED, EAGER, QUICK, eligible, failed, passed, workload

A, B, C = workload("a"), workload("b"), workload("c")
LIMIT = Outcome(Kind.NOT_RUN_LIMIT)


def group(id_: int, of: PlanGroup, entries: int = 1, downloads: int = 0) -> PlannedGroup:
    return PlannedGroup(id=id_, group=of, entries=entries, downloads=downloads)


def found(*cases: tuple[Variant, Sequence[Finding]]) -> Findings:
    return {(variant, finding.check): finding.outcome for variant, findings in cases for finding in findings}


GREEN = found((EAGER, passed(EAGER)), (COMPILED, passed(COMPILED)))
WRONG = found((EAGER, failed(EAGER, Check.PARITY, Kind.PARITY_NAN)), (COMPILED, passed(COMPILED)))
HALF = found((EAGER, passed(EAGER)))

GROUPS = [
    group(1, eligible(A, "k1"), 5),
    group(2, eligible(B, "k1"), 3),
    group(3, eligible(C, "k2"), 2),
    group(4, PlanGroup(listing=Outcome(Kind.LISTING_GATED, "404")), 7),
]


def settled(findings: Mapping[str, Findings], narrowing: Narrowing | None = None) -> dict[int, tuple[str, Evidence]]:
    ran = ran_for(GROUPS, findings)
    states = settle(QUICK, GROUPS, findings, ran, narrowing or Narrowing(), LIMIT)
    return {id_: (state.label, state.evidence) for id_, state in states.items()}


def test_a_group_stands_by_its_own_run_else_by_its_kernel_keys_else_by_nothing() -> None:
    assert settled({A.hash: GREEN}) == {
        1: ("green", Evidence.EXECUTED),
        2: ("green", Evidence.INHERITED),
        3: ("builds not-run:limit", Evidence.NONE),
        4: ("eligible listing:gated", Evidence.NONE),
    }


def test_an_own_run_counts_even_where_the_representative_did_better() -> None:
    states = settled({A.hash: GREEN, B.hash: WRONG})
    assert states[2] == ("parity parity:nan", Evidence.EXECUTED)
    assert settled({A.hash: GREEN, B.hash: HALF})[2] == ("builds not-run:limit", Evidence.EXECUTED)


def test_failures_are_inherited_like_passes() -> None:
    assert settled({A.hash: WRONG})[2] == ("parity parity:nan", Evidence.INHERITED)


def test_what_was_narrowed_away_says_so() -> None:
    narrowed = settled({A.hash: HALF}, Narrowing(mode=Mode.EAGER))
    assert narrowed[1] == ("builds not-run:narrowed", Evidence.EXECUTED)
    assert narrowed[3] == ("builds not-run:limit", Evidence.NONE)
    assert narrowed_findings(QUICK, Narrowing()) == {}
    skipped = narrowed_findings(QUICK, Narrowing(mode=Mode.EAGER))
    assert {variant for variant, _ in skipped} == {COMPILED}


def test_the_one_that_stands_for_a_kernel_key_is_the_run_one_with_most_entries_then_downloads_then_hash() -> None:
    assert ran_for(GROUPS, {A.hash: GREEN, B.hash: GREEN}) == {"k1": A.hash}
    assert ran_for(GROUPS, {B.hash: GREEN}) == {"k1": B.hash}
    tied = [group(1, eligible(A, "k"), 2, 5), group(2, eligible(B, "k"), 2, 9), group(3, eligible(C, "k"), 2, 9)]
    chosen = ran_for(tied, {A.hash: GREEN, B.hash: GREEN, C.hash: GREEN})
    assert chosen == ran_for(tied[::-1], {A.hash: GREEN, B.hash: GREEN, C.hash: GREEN})
    assert chosen["k"] == max(B.hash, C.hash)


def test_the_audit_counts_every_difference_in_standing() -> None:
    groups = [group(i, eligible(w, "k")) for i, w in enumerate([A, B, C])]
    findings, lent = {A.hash: GREEN}, {"k": A.hash}
    assert audit(QUICK, groups, {}, findings, lent) == Audit(drawn=0, disagreed=0)
    assert audit(QUICK, groups, {B.hash: GREEN, C.hash: GREEN}, findings, lent) == Audit(drawn=2, disagreed=0)
    assert audit(QUICK, groups, {B.hash: WRONG, C.hash: GREEN}, findings, lent) == Audit(drawn=2, disagreed=1)
    assert audit(QUICK, groups, {B.hash: HALF}, findings, lent) == Audit(drawn=1, disagreed=1)


def test_a_workload_in_several_groups_is_audited_once() -> None:
    groups = [group(1, eligible(A, "k")), group(2, eligible(B, "k")), group(3, eligible(B, "k", model_type="other"))]
    assert audit(QUICK, groups, {B.hash: WRONG}, {A.hash: GREEN}, {"k": A.hash}) == Audit(drawn=1, disagreed=1)


@pytest.mark.parametrize(("hits", "draws"), [(0, 1), (0, 59), (0, 300), (1, 100), (5, 50), (50, 300), (299, 300)])
def test_the_bound_is_clopper_and_pearsons(hits: int, draws: int) -> None:
    """At the bound, so few hits have a chance of exactly 5 %."""
    p = upper_bound(hits, draws)
    chance = sum(math.comb(draws, k) * p**k * (1 - p) ** (draws - k) for k in range(hits + 1))
    assert chance == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("draws", [0, 1, 7])
def test_nothing_drawn_and_nothing_agreed_prove_nothing(draws: int) -> None:
    assert upper_bound(draws, draws) == 1.0


def test_the_bound_falls_with_draws_and_rises_with_hits() -> None:
    by_draws = [upper_bound(0, n) for n in range(1, 60)]
    assert by_draws == sorted(by_draws, reverse=True)
    by_hits = [upper_bound(k, 40) for k in range(41)]
    assert by_hits == sorted(by_hits)
    assert all(k / 40 < bound <= 1.0 for k, bound in enumerate(by_hits) if k < 40)
    assert Audit(drawn=3, disagreed=1).bound == upper_bound(1, 3)


def test_those_that_were_audited_are_not_drawn_again() -> None:
    assert draw([("b", 3)], set(), seed=1) == ["b"]
    assert draw([("b", 3)], {"b"}, seed=1) == []
    assert draw([], set(), seed=1) == []


def test_a_draw_has_a_limit_that_earlier_ones_count_towards_and_names_nobody_twice() -> None:
    many = [(f"w{n % 1000}", 1) for n in range(2000)]
    first = draw(many, set(), seed=1)
    assert len(set(first)) == len(first) == AUDIT_LIMIT
    assert draw(many, set(first[:10]), seed=1) == first[10:]
    assert draw(many, set(first), seed=1) == []


def test_a_draw_is_reproducible_and_weighted_by_entries() -> None:
    heirs = [("b", 90), ("c", 10)]
    draws = [draw(heirs, set(), seed) for seed in range(400)]
    assert draws == [draw(heirs, set(), seed) for seed in range(400)]
    assert all(sorted(one) == ["b", "c"] for one in draws)
    first = sum(one[0] == "b" for one in draws)
    # Binomial(400, 0.9): within five standard deviations, and seeded, so never by chance.
    assert abs(first - 360) < 5 * math.sqrt(400 * 0.9 * 0.1)


def test_a_state_is_placed_on_every_rung_the_policy_asks_for() -> None:
    states = settle(QUICK, GROUPS, {A.hash: WRONG}, {"k1": A.hash}, Narrowing(), LIMIT)
    assert [one.rung for one in states[1].rungs] == list(QUICK.rungs)
    assert states[1].standing_at(Rung.TRAINS) is Standing.FAIL
