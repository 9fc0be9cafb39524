"""A policy says what is asked, refuses to ask nothing, and is named by what it asks."""

from typing import Any

import pytest

from neuronqa.domain.case import Dtype, Mode, Phase, Variant
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.outcome import LADDER, Check, Rung
from neuronqa.domain.policy import Limits, Policy, Thresholds, applies, checks_of

EAGER = Variant(Mode.EAGER, Dtype.FP32, Phase.TRAIN)
COMPILED = Variant(Mode.COMPILE, Dtype.FP32, Phase.TRAIN)
INFERRED = Variant(Mode.EAGER, Dtype.FP32, Phase.INFER)


def said(**changes: Any) -> dict[str, Any]:
    return {"name": "own", "required": {"runs": ["eager/fp32/train"]}, **changes}


def test_a_policy_reads_back_from_its_json() -> None:
    policy = Policy(
        name="own",
        required={Rung.RUNS: (EAGER, COMPILED), Rung.FULL_GRAPH: (COMPILED,)},
        thresholds=Thresholds(parity_ratio=4.0, graph_breaks=2),
        limits=Limits(deadline_s=9.5, probes=0),
    )
    again = Policy.from_json(policy.to_json())
    assert again == policy
    assert canonical_json(again.to_json()) == canonical_json(policy.to_json())


def test_the_hash_names_what_is_asked_and_not_the_name() -> None:
    one = Policy.from_json(said())
    assert one.sha256 == Policy.from_json(said(name="other")).sha256
    others = [
        said(required={"runs": ["compile/fp32/train"]}),
        said(required={"builds": ["eager/fp32/train"]}),
        said(thresholds={"parity_ratio": 7}),
        said(limits={"probes": 1}),
    ]
    assert len({one.sha256, *(Policy.from_json(other).sha256 for other in others)}) == 5


def test_a_number_means_the_same_with_and_without_a_point() -> None:
    whole, pointed = said(thresholds={"parity_ratio": 7}), said(thresholds={"parity_ratio": 7.0})
    assert Policy.from_json(whole).sha256 == Policy.from_json(pointed).sha256


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "no name"),
        (said(name=""), "no name"),
        (said(name=3), "no name"),
        ({"name": "own"}, "no rung requires"),
        (said(required={}), "no rung requires"),
        (said(required=3), "no rung requires"),
        (said(required=["runs"]), "no rung requires"),
        (said(required={"runs": []}), "must list variants"),
        (said(required={"runs": ["eager/fp32/train"], "parity": []}), "parity must list variants"),
        (said(required={"runs": "eager/fp32/train"}), "must list variants"),
        (said(required={"runs": [3]}), "must list variants"),
        (said(required={"runs": ["eager/fp99/train"]}), "not a variant"),
        (said(required={"flies": ["eager/fp32/train"]}), "flies"),
        (said(required={"full-graph": ["eager/fp32/train"]}), "full-graph has nothing to ask of eager/fp32/train"),
        (said(required={"trains": ["eager/fp32/infer"]}), "trains has nothing to ask"),
        (said(required={"fits": ["eager/fp32/train"]}), "fits has nothing to ask"),
        (said(required={"eligible": ["eager/fp32/train"]}), "eligible has nothing to ask"),
        (said(waivers=[]), "unknown keys: waivers"),
        (said(thresholds=3), "thresholds must be a table"),
        (said(thresholds={"parity": 1.0}), "no threshold 'parity'"),
        (said(thresholds={"parity_ratio": "8"}), "parity_ratio must be a number above 0"),
        (said(thresholds={"parity_ratio": True}), "parity_ratio must be"),
        (said(thresholds={"parity_ratio": float("nan")}), "parity_ratio must be"),
        (said(thresholds={"parity_ratio": float("inf")}), "parity_ratio must be"),
        (said(thresholds={"parity_ratio": 10**400}), "parity_ratio must be"),
        (said(thresholds={"parity_ratio": -1.0}), "parity_ratio must be"),
        (said(thresholds={"train_steps": 8.0}), "train_steps must be a whole number above 0"),
        (said(thresholds={"train_steps": 0}), "train_steps must be"),
        (said(limits={"deadline_s": 0}), "deadline_s must be"),
        (said(limits={"memory_mb": 1.5}), "memory_mb must be"),
        (said(limits={"probes": -1}), "probes must be a whole number from 0"),
        (said(limits={"speed": 1}), "no limit 'speed'"),
    ],
)
def test_what_does_not_say_a_policy_is_refused_in_words(value: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        Policy.from_json(value)


def test_registered_and_eligible_are_always_rungs_and_the_rest_are_those_asked() -> None:
    policy = Policy.from_json(said(required={"trains": ["eager/fp32/train"], "runs": ["eager/fp32/train"]}))
    assert policy.rungs == (Rung.REGISTERED, Rung.ELIGIBLE, Rung.RUNS, Rung.TRAINS)


def test_the_variants_are_those_of_any_rung_each_once() -> None:
    policy = Policy.from_json(
        said(required={"runs": ["eager/fp32/train", "compile/fp32/train"], "full-graph": ["compile/fp32/train"]})
    )
    assert policy.variants == (COMPILED, EAGER)


@pytest.mark.parametrize(
    ("variant", "absent"),
    [
        (COMPILED, {Check.FIT}),
        (EAGER, {Check.FIT, Check.COMPILE, Check.GRAPH}),
        (INFERRED, {Check.FIT, Check.COMPILE, Check.GRAPH, Check.TRAIN}),
    ],
)
def test_a_check_applies_where_it_has_a_question_to_ask(variant: Variant, absent: set[Check]) -> None:
    assert {check for check in Check if not applies(check, variant)} == absent


def test_every_check_that_applies_decides_exactly_one_rung() -> None:
    for variant in (EAGER, COMPILED, INFERRED):
        asked = [check for rung in LADDER for check in checks_of(rung, variant)]
        assert sorted(asked) == sorted(check for check in Check if applies(check, variant))
