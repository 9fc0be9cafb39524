"""The outcome table decides every kind, and an outcome's text reads back as the same outcome."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.outcome import (
    DETAIL_LIMIT,
    LADDER,
    AtFault,
    Check,
    Kind,
    Outcome,
    Rung,
    Stage,
    Standing,
    clean_detail,
)

ANY_TEXT = st.text(st.characters())
"""Lone surrogates included."""

OUTCOMES = st.builds(Outcome.of, st.sampled_from(Kind), ANY_TEXT)

HOSTILE = (
    "<script>alert(1)</script>",
    "a) (b",
    "SIGSEGV) ",
    "',;DROP TABLE attempt;--",
    "\x1b[31mred\x1b[0m",
    "left\u202eright",
    "nul\0byte",
    "lone\ud800",
    "one\r\ntwo\u2028three",
    "[bold]rich[/bold]",
    "{{ 7 * 7 }}",
    "(" * 300,
)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_decided(kind: Kind) -> None:
    rules = kind.rules
    assert kind.stage in Stage
    assert (rules.standing is Standing.PASS) == (kind.reason in ("pass", "eligible"))
    assert (rules.standing is Standing.FAIL) == (rules.at_fault is not AtFault.NOBODY)
    assert (rules.standing is Standing.NOT_RUN) == (kind.stage is Stage.NOT_RUN)


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_belongs_to_the_check_its_stage_is_named_for(kind: Kind) -> None:
    checks = {check.value: check for check in Check}
    assert kind.rules.check is checks.get(kind.stage.value)
    if kind.rules.check is not None:
        assert kind.rules.rung is kind.rules.check.rung
    else:
        assert kind.rules.rung is (Rung.ELIGIBLE if kind.stage is Stage.LISTING else None)


@pytest.mark.parametrize("kind", Kind)
def test_what_depends_on_the_machine_or_the_day_is_never_reused(kind: Kind) -> None:
    fleeting = kind.reason in ("timeout", "oom", "fetch_error") or kind.stage in (
        Stage.INCONCLUSIVE,
        Stage.NOT_RUN,
        Stage.INFRA,
    )
    assert kind.rules.reusable is not fleeting


def test_every_check_can_pass_and_can_fail() -> None:
    for check in Check:
        said = {kind.rules.standing for kind in Kind if kind.rules.check is check}
        assert said == {Standing.PASS, Standing.FAIL}, check


def test_every_listing_status_has_its_own_kind() -> None:
    kinds = {status.kind for status in ListingStatus}
    assert kinds == {kind for kind in Kind if kind.stage is Stage.LISTING}
    assert len(kinds) == len(ListingStatus)


def test_the_ladder_goes_up_in_the_order_a_model_climbs_it() -> None:
    assert [rung.value for rung in LADDER] == [
        "registered",
        "eligible",
        "builds",
        "runs",
        "native",
        "full-graph",
        "state",
        "parity",
        "trains",
        "fits",
    ]
    assert [rung.height for rung in LADDER] == list(range(len(LADDER)))


def test_what_the_reference_cannot_do_is_never_the_devices_fault() -> None:
    for kind in Kind:
        if kind.stage in (Stage.LISTING, Stage.BUILD, Stage.INPUTS, Stage.REFERENCE):
            assert kind.rules.at_fault is not AtFault.DEVICE


@given(OUTCOMES)
def test_the_text_form_reads_back(outcome: Outcome) -> None:
    assert Outcome.parse(str(outcome)) == outcome
    assert Outcome.parse(json.loads(canonical_json(str(outcome)))) == outcome


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_details_read_back(text: str) -> None:
    for kind in Kind:
        outcome = Outcome.of(kind, text)
        assert Outcome.parse(str(outcome)) == outcome


@given(ANY_TEXT)
@example("x" * 199 + " y")
@example(" " * 900 + "x")
def test_a_cleaned_detail_is_one_short_line_of_shown_characters(text: str) -> None:
    clean = clean_detail(text)
    assert clean_detail(clean) == clean
    assert len(clean) <= DETAIL_LIMIT
    assert clean == " ".join(clean.split())
    assert not {unicodedata.category(ch) for ch in clean} & {"Cc", "Cf", "Cs", "Co"}
    clean.encode("utf-8")


def test_a_detail_of_a_newer_unicode_is_kept() -> None:
    """An older Python must be able to read what a newer one wrote: unassigned characters are no ground for refusal."""
    unassigned = "\U0001fadf"  # a splatter, assigned in Unicode 16
    assert Outcome.of(Kind.RUN_ERROR, unassigned).detail == unassigned


@pytest.mark.parametrize(
    "text",
    [
        "",
        "run",
        "run:",
        "run:crash(",
        "run:crash()",
        "run:crash)",
        "run:crash(a",
        "run:crash(a) ",
        " run:crash(a)",
        "run:crash( a)",
        "run:crash(a\n)",
        "RUN:CRASH",
        "run:nonsense",
        "parity:crash",
        "run:crash(a)(",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        Outcome.parse(text)


def test_a_detail_that_was_not_cleaned_is_refused() -> None:
    with pytest.raises(ValueError, match="not a clean detail"):
        Outcome(Kind.RUN_CRASH, "two\nlines")
