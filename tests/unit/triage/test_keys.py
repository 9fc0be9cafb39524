"""What makes two failures one cause."""

from __future__ import annotations

import pytest

from neuronqa.db.occurrences import Occurrence
from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.triage.attribution import Failure, attribute
from neuronqa.triage.keys import KEY_VERSION, Cause, PartName

EAGER, COMPILED, HALF = (Variant.parse(f"{text}/train") for text in ("eager/fp32", "compile/fp32", "eager/bf16"))


def cause(text: str, check: Check | None = None, message: str = "") -> Cause:
    outcome = Outcome.parse(text)
    return Cause(check or outcome.kind.rules.check or Check.RUN, outcome, message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fallback:no-kernel(aten::gelu float32)", "run:unsupported-op(aten::gelu float32)"),
        ("fallback:no-kernel(aten::gelu float32)", "fallback:no-kernel(aten::gelu bfloat16)"),
        ("fallback:no-kernel(aten::mul float32)", "fallback:no-kernel(aten::mul int64)"),
        ("fallback:no-kernel(aten::mul float32)", "run:unsupported-op(aten::mul)"),
        ("parity:scale(aten::sqrt float32)", "parity:scale(aten::_foreach_sqrt float32)"),
        ("parity:scale(aten::add.Tensor float32)", "train:diverged(aten::add_.Scalar float32)"),
        ("parity:nan(aten::_safe_softmax float32)", "parity:nan(aten::_softmax float32)"),
        ("parity:nan(aten::div.Tensor float32)", "parity:nan(aten::div.Tensor int64)"),
        ("parity:scale(aten::mm float32)", "parity:offset(aten::mm float32)"),
        ("parity:scale(aten::mm float32)", "parity:sign(aten::mm bfloat16)"),
        ("parity:scale(aten::mm float32)", "train:diverged(aten::mm float32)"),
        ("parity:nan(aten::mm float32)", "parity:inf(aten::mm float32)"),
        ("parity:nan(aten::mm float32)", "train:non-finite(aten::mm float32)"),
    ],
)
def test_one_cause_has_one_key_however_it_shows(one: str, other: str) -> None:
    assert cause(one).key == cause(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fallback:no-kernel(aten::gelu float32)", "fallback:no-kernel(aten::silu float32)"),
        ("fallback:arguments(aten::mul float32)", "fallback:arguments(aten::mul int64)"),
        ("fallback:no-kernel(aten::mul.Tensor float32)", "fallback:no-kernel(aten::mul.Scalar float32)"),
        ("parity:scale(aten::mul float32)", "parity:scale(aten::mul int64)"),
        ("parity:scale(aten::mm float32)", "parity:scale(aten::addmm float32)"),
        ("fallback:no-kernel(aten::gelu float32)", "fallback:hidden(aten::gelu float32)"),
        ("fallback:no-kernel(aten::gelu float32)", "parity:scale(aten::gelu float32)"),
        ("parity:scale(aten::mm float32)", "parity:nan(aten::mm float32)"),
        ("parity:scale(aten::mm float32)", "parity:shape(aten::mm float32)"),
        ("parity:scale(compiled graph)", "parity:nan(compiled graph)"),
        ("run:crash(SIGSEGV aten::mm)", "run:crash(SIGABRT aten::mm)"),
        ("run:crash(SIGSEGV aten::mm)", "run:crash(SIGSEGV aten::add)"),
        ("graph:break(GB0001 a)", "graph:break(GB0002 b)"),
    ],
)
def test_different_causes_have_different_keys(one: str, other: str) -> None:
    assert cause(one).key != cause(other).key


def test_a_key_names_its_version_and_says_why_each_part_counts_or_does_not() -> None:
    found = cause("parity:scale(aten::mm bfloat16)")
    assert found.key.startswith(f"{KEY_VERSION}:")
    assert [(part.name, part.value, part.counts) for part in found.parts] == [
        (PartName.NATURE, "wrong numbers", True),
        (PartName.KERNEL, "aten::mm", True),
        (PartName.SUBJECT, "aten::mm", False),
        (PartName.CLASS, "float", True),
        (PartName.DTYPE, "bfloat16", False),
        (PartName.MANNER, "scale", False),
        (PartName.CHECK, "parity", False),
    ]
    assert all(part.hint for part in found.parts)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("shapes (8x17 and 16x16) do not fit", "shapes (4x9 and 32x32) do not fit", True),
        ("LlamaModel.forward() got an argument", "BertModel.forward() got an argument", True),
        ("no such key 'model.layers.0.weight'", "no such key 'encoder.block.11.bias'", True),
        ("\"add\" not implemented for 'Half'", "\"mul\" not implemented for 'Half'", False),
        ("channels last is not supported", "the index is out of range", False),
        ("\u202e<b>\x00 = 1", "\u202e<b>\x00 = 2", True),
    ],
)
def test_the_message_of_an_exception_tells_causes_apart_without_names_and_numbers(
    one: str, other: str, same: bool
) -> None:
    keys = {cause("run:error(RuntimeError)", message=message).key for message in (one, other)}
    assert (len(keys) == 1) is same


def test_an_operator_says_more_than_a_message() -> None:
    one, other = (cause("run:error(RuntimeError aten::add.Tensor)", message=text) for text in ("this", "that"))
    assert one.key == other.key


def seen(variant: Variant, check: Check, kind: Kind, detail: str = "", workload: int = 1) -> Occurrence:
    case = 10 * workload + [EAGER, COMPILED, HALF].index(variant)
    return Occurrence(case, workload, f"w{workload}", "family", variant, check, Outcome(kind, detail), 1, case)


def put_down(*found: Occurrence) -> list[tuple[str, bool]]:
    def text(failure: Failure) -> tuple[str, bool]:
        return str(failure.cause.outcome), failure.symptom

    return [text(failure) for failure in attribute(found)]


def test_training_that_goes_wrong_after_wrong_numbers_is_their_symptom() -> None:
    assert put_down(
        seen(EAGER, Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"),
        seen(EAGER, Check.TRAIN, Kind.TRAIN_GRADIENT_NORM),
    ) == [("parity:scale(aten::mm float32)", False), ("parity:scale(aten::mm float32)", True)]


def test_training_that_goes_wrong_by_the_operator_parity_names_is_its_symptom_in_whatever_manner() -> None:
    parity = seen(EAGER, Check.PARITY, Kind.PARITY_NAN, "aten::where.self bool")
    train = seen(EAGER, Check.TRAIN, Kind.TRAIN_DIVERGED, "aten::where.self bool")
    first, second = attribute([parity, train])
    assert (second.cause, second.symptom) == (first.cause, True)


def test_training_that_goes_wrong_by_itself_is_a_cause() -> None:
    assert put_down(seen(EAGER, Check.TRAIN, Kind.TRAIN_DIVERGED)) == [("train:diverged", False)]


def test_a_compiled_graph_that_is_wrong_as_the_eager_operator_is_is_its_symptom() -> None:
    eager = seen(EAGER, Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32")
    compiled = seen(COMPILED, Check.PARITY, Kind.PARITY_OFFSET, "compiled graph")
    assert put_down(eager, compiled)[1] == ("parity:scale(aten::mm float32)", True)
    nan = seen(COMPILED, Check.PARITY, Kind.PARITY_NAN, "compiled graph")
    assert put_down(eager, nan)[1] == ("parity:nan(compiled graph)", False), "another error is another cause"
    elsewhere = seen(COMPILED, Check.PARITY, Kind.PARITY_SCALE, "compiled graph", workload=2)
    assert put_down(eager, elsewhere)[1] == ("parity:scale(compiled graph)", False), "of another model"


def test_each_operator_that_falls_back_is_a_cause_of_its_own() -> None:
    found = put_down(
        seen(EAGER, Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::a float32"),
        seen(EAGER, Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::b float32"),
    )
    assert [symptom for _, symptom in found] == [False, False]
