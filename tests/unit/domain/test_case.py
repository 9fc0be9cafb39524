"""Variants, cases and attempts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.domain.case import AttemptKind, Case, Dtype, Mode, Phase, Variant

VARIANTS = st.builds(
    Variant, st.sampled_from(Mode), st.sampled_from(Dtype), st.sampled_from(Phase), st.integers(1, 100_000)
)
EAGER = Variant(Mode.EAGER, Dtype.FP32, Phase.TRAIN)


@given(VARIANTS)
def test_a_variants_text_reads_back(variant: Variant) -> None:
    assert Variant.parse(str(variant)) == variant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eager",
        "eager/fp32",
        "eager/fp32/train/1",
        "eager/fp32/train/0",
        "eager/fp32/train/-2",
        "eager/fp32/train/+2",
        "eager/fp32/train/ 2",
        "eager/fp32/train/02",
        "eager/fp32/train/٢",
        "eager/fp32/train/2\n",
        "eager/fp32/train/2/2",
        "eager/fp64/train",
        "EAGER/fp32/train",
        "eager/fp32/train/",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a variant"):
        Variant.parse(text)


def test_less_than_one_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Variant(Mode.EAGER, Dtype.FP32, Phase.TRAIN, 0)


def test_a_cases_id_never_changes() -> None:
    case = Case(workload="0" * 32, device="neuron", variant=EAGER)
    assert case.id == "a73d5a90d60217458eccbd09cec2ede2"


def test_every_part_of_a_case_is_in_its_id() -> None:
    case = Case(workload="0" * 32, device="neuron", variant=EAGER)
    others = [
        replace(case, workload="1" * 32),
        replace(case, device="cpu:inductor"),
        replace(case, variant=replace(EAGER, mode=Mode.COMPILE)),
        replace(case, variant=replace(EAGER, dtype=Dtype.BF16)),
        replace(case, variant=replace(EAGER, phase=Phase.INFER)),
        replace(case, variant=replace(EAGER, ranks=2)),
    ]
    assert len({one.id for one in (case, *others)}) == 7


def test_only_records_and_solo_runs_decide_a_rung() -> None:
    assert {kind for kind in AttemptKind if kind.counts} == {
        AttemptKind.RECORD,
        AttemptKind.ALONE,
        AttemptKind.REUSED,
    }
