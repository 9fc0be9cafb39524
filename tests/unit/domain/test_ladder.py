"""Where an entry stands, and what a rate counts: a table, and laws that hold for every input."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.domain.case import Dtype, Mode, Phase, Variant
from neuronqa.domain.ladder import EntryState, Evidence, Gate, Group, Weight, entry_state, gates
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung, Standing
from neuronqa.domain.policy import Policy

EAGER = Variant(Mode.EAGER, Dtype.FP32, Phase.TRAIN)
COMPILED = Variant(Mode.COMPILE, Dtype.FP32, Phase.TRAIN)
BOTH = (EAGER, COMPILED)
POLICY = Policy(
    name="table",
    required={
        Rung.BUILDS: BOTH,
        Rung.RUNS: BOTH,
        Rung.NATIVE: BOTH,
        Rung.FULL_GRAPH: (COMPILED,),
        Rung.STATE: BOTH,
        Rung.PARITY: BOTH,
        Rung.TRAINS: BOTH,
    },
)
ASKED = [pair for rung in POLICY.rungs for pair in POLICY.asks(rung)]
ELIGIBLE = Outcome(Kind.LISTING_ELIGIBLE)
BUDGET = Outcome(Kind.NOT_RUN_BUDGET)
PASSED = {pair: Outcome(Kind(f"{pair[1].value}:pass")) for pair in ASKED}

Found = Mapping[tuple[Variant, Check], Outcome]


def without(*variants: Variant) -> dict[tuple[Variant, Check], Outcome]:
    return {pair: outcome for pair, outcome in PASSED.items() if pair[0] not in variants}


def after(failure: Check, kind: Kind, detail: str = "", variant: Variant = EAGER) -> Found:
    """What a case leaves that failed at `failure`: every later check of it is blocked."""
    order = list(Check)
    blocked = Outcome(Kind.NOT_RUN_BLOCKED, failure.value)
    later = {
        (variant, check): blocked for v, check in ASKED if v is variant and order.index(check) > order.index(failure)
    }
    return {**PASSED, **later, (variant, failure): Outcome(kind, detail)}


def one(check: Check, kind: Kind, detail: str = "", variant: Variant = EAGER) -> Found:
    return {**PASSED, (variant, check): Outcome(kind, detail)}


def place(found: Found, listing: Outcome = ELIGIBLE, evidence: Evidence = Evidence.EXECUTED) -> EntryState:
    return entry_state(POLICY, listing, found, evidence, BUDGET)


TABLE: dict[str, tuple[Found, str, dict[Rung, Standing]]] = {
    "everything passed": (PASSED, "green", {}),
    "nothing was run": (
        {},
        "builds not-run:budget",
        dict.fromkeys(POLICY.rungs[2:], Standing.NOT_RUN),
    ),
    "compiled case not run": (
        without(COMPILED),
        "builds not-run:budget",
        dict.fromkeys(POLICY.rungs[2:], Standing.NOT_RUN),
    ),
    "eager case fails, compiled case not run": (
        {**without(COMPILED), (EAGER, Check.PARITY): Outcome(Kind.PARITY_SCALE)},
        "parity parity:scale",
        {**dict.fromkeys(POLICY.rungs[2:], Standing.NOT_RUN), Rung.PARITY: Standing.FAIL},
    ),
    "does not build": (
        {
            pair: Outcome(Kind.BUILD_ERROR, "KeyError")
            if pair[1] is Check.BUILD
            else Outcome(Kind.NOT_RUN_BLOCKED, "build")
            for pair in ASKED
        },
        "builds build:error",
        {Rung.BUILDS: Standing.FAIL, **dict.fromkeys(POLICY.rungs[3:], Standing.NOT_RUN)},
    ),
    "inputs are partial": (
        one(Check.INPUTS, Kind.INPUTS_PARTIAL, "image"),
        "builds inputs:partial",
        {Rung.BUILDS: Standing.FAIL},
    ),
    "crashes in eager": (
        after(Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm"),
        "runs run:crash",
        {
            Rung.RUNS: Standing.FAIL,
            Rung.NATIVE: Standing.NOT_RUN,
            Rung.STATE: Standing.NOT_RUN,
            Rung.PARITY: Standing.NOT_RUN,
            Rung.TRAINS: Standing.NOT_RUN,
        },
    ),
    "falls back and is wrong": (
        {
            **one(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::cumsum"),
            (COMPILED, Check.PARITY): Outcome(Kind.PARITY_NAN),
        },
        "native fallback:no-kernel",
        {Rung.NATIVE: Standing.FAIL, Rung.PARITY: Standing.FAIL},
    ),
    "graph break": (
        one(Check.GRAPH, Kind.GRAPH_BREAK, "GB0001", COMPILED),
        "full-graph graph:break",
        {Rung.FULL_GRAPH: Standing.FAIL},
    ),
    "the worker was lost": (
        {pair: Outcome(Kind.INFRA_LOST, "node") for pair in ASKED},
        "builds infra:lost",
        dict.fromkeys(POLICY.rungs[2:], Standing.FAIL),
    ),
    "inconclusive is not a pass": (
        one(Check.TRAIN, Kind.INCONCLUSIVE_NO_POWER, "flat curve"),
        "trains inconclusive:no-power",
        {Rung.TRAINS: Standing.FAIL},
    ),
    "timeout is not a pass": (
        after(Check.RUN, Kind.RUN_TIMEOUT),
        "runs run:timeout",
        {
            Rung.RUNS: Standing.FAIL,
            Rung.NATIVE: Standing.NOT_RUN,
            Rung.STATE: Standing.NOT_RUN,
            Rung.PARITY: Standing.NOT_RUN,
            Rung.TRAINS: Standing.NOT_RUN,
        },
    ),
    "narrowed to eager": (
        {**without(COMPILED), **{(COMPILED, c): Outcome(Kind.NOT_RUN_NARROWED) for v, c in ASKED if v is COMPILED}},
        "builds not-run:narrowed",
        dict.fromkeys(POLICY.rungs[2:], Standing.NOT_RUN),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_where_an_entry_stands(name: str) -> None:
    found, label, standings = TABLE[name]
    state = place(found)
    assert state.label == label
    assert state.green == (label == "green")
    expected = {rung: standings.get(rung, Standing.PASS) for rung in POLICY.rungs}
    assert {one.rung: one.standing for one in state.rungs} == expected


@pytest.mark.parametrize(
    "kind", [kind for kind in Kind if kind.value.startswith("listing:") and kind is not Kind.LISTING_ELIGIBLE]
)
def test_an_ineligible_entry_fails_there_and_inherits_nothing(kind: Kind) -> None:
    state = place(PASSED, listing=Outcome(kind, "why"), evidence=Evidence.INHERITED)
    assert state.label == f"eligible {kind.value}"
    assert state.evidence is Evidence.NONE
    assert not state.green
    assert [one.standing for one in state.rungs[2:]] == [Standing.NOT_RUN] * 7
    assert all(state.standing_at(rung) is Standing.FAIL for rung in POLICY.rungs[1:])


def test_an_inherited_verdict_stands_like_an_executed_one_and_says_so() -> None:
    own, lent = place(PASSED), place(PASSED, evidence=Evidence.INHERITED)
    assert own.rungs == lent.rungs
    assert (own.evidence, lent.evidence) == (Evidence.EXECUTED, Evidence.INHERITED)


def test_rungs_are_cumulative() -> None:
    state = place({**without(COMPILED), (EAGER, Check.FALLBACK): Outcome(Kind.FALLBACK_NO_KERNEL)})
    assert state.standing_at(Rung.ELIGIBLE) is Standing.PASS
    assert state.standing_at(Rung.BUILDS) is Standing.NOT_RUN
    assert state.standing_at(Rung.RUNS) is Standing.NOT_RUN
    assert state.standing_at(Rung.NATIVE) is Standing.FAIL
    assert state.standing_at(Rung.TRAINS) is Standing.FAIL


def test_the_first_variant_that_fails_names_the_failure() -> None:
    found = {**one(Check.PARITY, Kind.PARITY_NAN), (COMPILED, Check.PARITY): Outcome(Kind.PARITY_ZERO)}
    missed = place(found).missed
    assert missed is not None
    assert missed.outcome == Outcome(Kind.PARITY_NAN)


def test_a_rung_the_policy_does_not_ask_for_is_not_on_the_ladder() -> None:
    policy = replace(POLICY, required={Rung.RUNS: BOTH})
    found = one(Check.PARITY, Kind.PARITY_NAN)
    state = entry_state(policy, ELIGIBLE, found, Evidence.EXECUTED)
    assert [one.rung for one in state.rungs] == [Rung.REGISTERED, Rung.ELIGIBLE, Rung.RUNS]
    assert state.green


STANDINGS = [ELIGIBLE, Outcome(Kind.RUN_ERROR), BUDGET]
OUTCOMES = st.sampled_from([Outcome(kind) for kind in Kind])
FOUND = st.dictionaries(st.sampled_from(ASKED), OUTCOMES)
LISTINGS = st.sampled_from([Outcome(kind) for kind in Kind if kind.value.startswith("listing:")])
STATES = st.builds(place, FOUND, LISTINGS, st.sampled_from(Evidence)) | st.builds(place, st.just(PASSED))


@given(STATES)
def test_a_state_is_green_exactly_when_nothing_is_missed(state: EntryState) -> None:
    assert state.green == (state.missed is None) == (state.label == "green")
    assert state.green == (state.standing_at(POLICY.rungs[-1]) is Standing.PASS)


@given(STATES)
def test_an_entry_never_stands_better_on_a_higher_rung(state: EntryState) -> None:
    worth = {Standing.PASS: 2, Standing.NOT_RUN: 1, Standing.FAIL: 0}
    heights = [worth[state.standing_at(rung)] for rung in POLICY.rungs]
    assert heights == sorted(heights, reverse=True)


@given(FOUND, st.sampled_from(ASKED), OUTCOMES)
def test_only_a_full_set_of_passes_is_green(found: Found, pair: tuple[Variant, Check], outcome: Outcome) -> None:
    state = place({**PASSED, **found, pair: outcome})
    assert state.green == all({**PASSED, **found, pair: outcome}[p].standing is Standing.PASS for p in ASKED)


GROUPS = st.lists(st.builds(Group, STATES, st.integers(0, 10**6), st.integers(0, 10**12)), max_size=6)


@given(GROUPS, st.floats(0, 1), st.sets(st.sampled_from(Rung)), st.sampled_from(Weight))
def test_every_rungs_counts_add_up_and_its_rates_are_in_order(
    groups: list[Group], disagreement: float, withheld: set[Rung], weight: Weight
) -> None:
    counted = gates(POLICY, groups, disagreement=disagreement, withheld=frozenset(withheld), weight=weight)
    total = sum(group.entries if weight is Weight.ENTRIES else group.downloads for group in groups)
    assert [gate.rung for gate in counted] == list(POLICY.rungs)
    for gate in counted:
        assert gate.passed + gate.failed + gate.not_run == gate.registered == total
        assert (gate.low is None) == (gate.high is None)
        if gate.low is not None and gate.high is not None:
            assert 0.0 <= gate.low <= gate.high <= 1.0
    for below, above in pairwise(counted):
        assert above.passed <= below.passed
        assert above.failed >= below.failed
        if below.low is None:
            assert above.low is None


def counted(groups: list[Group], disagreement: float = 0.0, withheld: tuple[Rung, ...] = ()) -> dict[Rung, Gate]:
    return {g.rung: g for g in gates(POLICY, groups, disagreement=disagreement, withheld=frozenset(withheld))}


GREEN, LENT = place(PASSED), place(PASSED, evidence=Evidence.INHERITED)
WRONG, LENT_WRONG = (
    place(one(Check.PARITY, Kind.PARITY_NAN), evidence=e) for e in (Evidence.EXECUTED, Evidence.INHERITED)
)
UNRUN = place({}, evidence=Evidence.NONE)
PART = place({**without(COMPILED), (EAGER, Check.PARITY): Outcome(Kind.PARITY_NAN)})
GATED = place({}, listing=Outcome(Kind.LISTING_GATED), evidence=Evidence.NONE)


def test_the_arithmetic_of_one_sweep() -> None:
    groups = [
        Group(GREEN, 10, 1000),
        Group(LENT, 40, 400),
        Group(WRONG, 5, 10_000),
        Group(LENT_WRONG, 15, 0),
        Group(UNRUN, 20, 50),
        Group(PART, 4, 7),
        Group(GATED, 6, 3),
    ]
    at = counted(groups, disagreement=0.1)
    assert at[Rung.REGISTERED] == Gate(Rung.REGISTERED, 100, 0, 0, 100, 1.0, 1.0)
    assert at[Rung.ELIGIBLE] == Gate(Rung.ELIGIBLE, 94, 6, 0, 100, 0.94, 0.94)
    # builds: 10 green + 5 wrong executed, 40 + 15 inherited at 90 %; 20 unrun and 4 partly run are not run.
    assert at[Rung.BUILDS] == Gate(Rung.BUILDS, 70, 6, 24, 100, (15 + 55 * 0.9) / 100, 0.94)
    # parity: what was partly run and failed can no longer pass.
    assert at[Rung.PARITY] == Gate(Rung.PARITY, 50, 30, 20, 100, (10 + 40 * 0.9) / 100, 0.70)
    assert at[Rung.TRAINS] == Gate(Rung.TRAINS, 50, 30, 20, 100, (10 + 40 * 0.9) / 100, 0.70)


def test_downloads_weigh_by_themselves() -> None:
    groups = [Group(GREEN, 1, 900), Group(UNRUN, 99, 100)]
    by_downloads = {g.rung: g for g in gates(POLICY, groups, disagreement=0.0, weight=Weight.DOWNLOADS)}
    assert by_downloads[Rung.TRAINS] == Gate(Rung.TRAINS, 900, 0, 100, 1000, 0.9, 1.0)


def test_unaudited_inheritance_counts_for_nothing_at_the_low_end() -> None:
    at = counted([Group(GREEN, 1, 0), Group(LENT, 99, 0)], disagreement=1.0)
    assert (at[Rung.TRAINS].low, at[Rung.TRAINS].high) == (0.01, 1.0)
    assert (at[Rung.ELIGIBLE].low, at[Rung.ELIGIBLE].high) == (1.0, 1.0)


def test_a_withheld_rung_withholds_every_rung_above_it_but_no_count() -> None:
    groups = [Group(GREEN, 3, 0), Group(WRONG, 1, 0)]
    at = counted(groups, withheld=(Rung.STATE, Rung.PARITY))
    assert [rung for rung in POLICY.rungs if at[rung].low is None] == [Rung.STATE, Rung.PARITY, Rung.TRAINS]
    assert (at[Rung.TRAINS].passed, at[Rung.TRAINS].failed) == (3, 1)
    assert at[Rung.FULL_GRAPH].low == 1.0


def test_an_empty_catalog_has_no_rate_above_zero() -> None:
    assert all((gate.low, gate.high) == (0.0, 0.0) for gate in counted([]).values())


@pytest.mark.parametrize("disagreement", [-0.1, 1.1, float("nan")])
def test_a_disagreement_that_is_no_share_is_refused(disagreement: float) -> None:
    with pytest.raises(ValueError, match="disagreement"):
        gates(POLICY, [], disagreement=disagreement)


def test_a_failure_never_raises_and_a_pass_never_lowers_a_rate() -> None:
    """More is known after each step, so the interval may only shrink."""
    for rest, (pair, kind) in product(
        [0, 5], [((EAGER, Check.PARITY), Kind.PARITY_NAN), ((EAGER, Check.BUILD), Kind.BUILD_ERROR)]
    ):
        unknown = [Group(UNRUN, 10, 0), Group(GREEN, rest, 0)]
        failed = [Group(place({**PASSED, pair: Outcome(kind)}), 1, 0), Group(UNRUN, 9, 0), Group(GREEN, rest, 0)]
        passed = [Group(GREEN, rest + 1, 0), Group(UNRUN, 9, 0)]
        for rung in POLICY.rungs[2:]:
            before, bad, good = (counted(groups)[rung] for groups in (unknown, failed, passed))
            assert before.low is not None
            assert before.high is not None
            assert bad.high is not None
            assert good.low is not None
            assert bad.high <= before.high
            assert good.low >= before.low
