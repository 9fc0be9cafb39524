"""Cause keys: what makes two failures the same, part by part, so that a person can see why.

A key is made of what the checks found to be to blame (an operator, a code, a registry id), never of a model, a frame, a
line or a message: those say where the victim stood. Parts that do not count are kept beside it, to split by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from neuronqa.checks.pattern import masked
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import Check, Kind, Outcome, Stage, clean_detail

KEY_VERSION: Final = "ck2"
"""Raised whenever the rules below change what a key is; clusters keep their ids (see :mod:`neuronqa.triage.rekey`)."""
KEY_DIGITS: Final = 12

VAGUE: Final = frozenset(
    {Kind.RUN_ERROR, Kind.LOAD_ERROR, Kind.COMPILE_ERROR, Kind.REFERENCE_ERROR, Kind.BUILD_ERROR, Kind.INPUTS_ERROR}
)
"""Kinds whose detail may be no more than an exception's class: the message, masked, then tells causes apart."""

_CALL: Final = re.compile(r"\b[A-Za-z_][\w.]*\(\)")
_SIZES: Final = re.compile(r"\b\d+(?:x\d+)+\b")
_PLACE: Final = re.compile(r"(['\"])[\w./-]*[./][\w./-]*\1")
_NO_KERNEL: Final = frozenset({Kind.RUN_UNSUPPORTED_OP, Kind.FALLBACK_NO_KERNEL})
_NUMBERS: Final = frozenset(
    {Kind.PARITY_ZERO, Kind.PARITY_SCALE, Kind.PARITY_SIGN, Kind.PARITY_OFFSET, Kind.PARITY_SCATTER}
)
_NON_FINITE: Final = frozenset({Kind.PARITY_NAN, Kind.PARITY_INF})
NOT_FINITE: Final = "not finite"
_INSIDE: Final = {"aten::_safe_softmax": "aten::_softmax", "aten::softmax": "aten::_softmax"}
"""Operators that a search sees whole, and the one that does their work inside."""
_CLASSES: Final = {
    "float64": "float",
    "float32": "float",
    "float16": "float",
    "bfloat16": "float",
    "complex64": "complex",
    "complex128": "complex",
    "int64": "int",
    "int32": "int",
    "int16": "int",
    "int8": "int",
    "uint8": "int",
    "bool": "bool",
}


class PartName(StrEnum):
    """What a part of a key is about."""

    NATURE = "nature"
    SUBJECT = "subject"
    KERNEL = "kernel"
    CLASS = "dtype class"
    DTYPE = "dtype"
    MANNER = "manner"
    MESSAGE = "message"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what was seen, whether it makes the key, and why."""

    name: PartName
    value: str
    counts: bool
    hint: str

    def to_json(self) -> dict[str, object]:
        return {"name": self.name.value, "value": self.value, "counts": self.counts, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class Cause:
    """One failing outcome as a cause: its parts, and the key they make."""

    check: Check
    outcome: Outcome
    message: str = ""
    """What the exception said, for kinds in :data:`VAGUE`."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return _parts(self)

    @property
    def key(self) -> str:
        """`ck2:` and 12 hex digits over the parts that count."""
        return _key(self)

    @property
    def nature(self) -> str:
        return self._value(PartName.NATURE)

    @property
    def operator(self) -> str:
        """The operator to blame; empty where none is known."""
        return self._value(PartName.SUBJECT) if _operator(self.outcome.detail)[0] else ""

    @property
    def kernel(self) -> str:
        """What does the operator's work; empty where none is known."""
        return kernel(self.operator) if self.operator else ""

    def _value(self, name: PartName) -> str:
        return next((part.value for part in self.parts if part.name is name), "")


@lru_cache(maxsize=1 << 16)
def _key(cause: Cause) -> str:
    return key_of(_parts(cause))


def key_of(parts: Iterable[Part]) -> str:
    """The key that these parts make."""
    counting = [[part.name.value, part.value] for part in parts if part.counts]
    return f"{KEY_VERSION}:{content_hash(counting)[:KEY_DIGITS]}"


@lru_cache(maxsize=1 << 16)
def _parts(cause: Cause) -> tuple[Part, ...]:
    kind, check = cause.outcome.kind, cause.check
    operator, dtype = _operator(cause.outcome.detail)
    if kind in _NO_KERNEL and operator:
        return (
            Part(PartName.NATURE, "no kernel", True, "refusing the operator and running it elsewhere are one lack"),
            Part(PartName.SUBJECT, operator, True, "the operator to blame"),
            *(
                [Part(PartName.DTYPE, dtype, False, "where there is no kernel, there is none for any dtype")]
                * bool(dtype)
            ),
            Part(PartName.CHECK, check.value, False, "whether it stops the run depends on the mode, not on the cause"),
        )
    if operator and kind.stage in (Stage.PARITY, Stage.TRAIN):
        return (
            Part(PartName.NATURE, _nature(kind), True, "what the operator's own result looks like"),
            Part(
                PartName.KERNEL, kernel(operator), True, "its overloads, in place and over lists too, share one kernel"
            ),
            Part(PartName.SUBJECT, operator, False, "the operator to blame"),
            *_of_result(kind, dtype),
            Part(PartName.MANNER, kind.reason, False, "the same error looks different at other values"),
            Part(PartName.CHECK, check.value, False, "the curve leaves the CPU's because this operator is wrong"),
        )
    nature = Part(PartName.NATURE, kind.value, True, "its own kind of failure")
    if operator:
        return (nature, *_subject(operator, dtype))
    subject = Part(PartName.SUBJECT, cause.outcome.detail, True, "what the check found to be to blame")
    question = Part(PartName.CHECK, check.value, True, "the question it answers")
    if kind in VAGUE and "::" not in cause.outcome.detail and cause.message:
        said = Part(PartName.MESSAGE, _said(cause.message), True, "an exception's class alone holds many causes")
        return (nature, subject, said, question)
    return (nature, subject, question)


def _subject(operator: str, dtype: str) -> tuple[Part, ...]:
    subject = Part(PartName.SUBJECT, operator, True, "the operator to blame")
    return (subject, *_classed(dtype))


def _of_result(kind: Kind, dtype: str) -> tuple[Part, ...]:
    """The dtype is the first argument's: a condition, or integers that are divided, though the result is neither."""
    if dtype and _nature(kind) == NOT_FINITE:
        return (Part(PartName.DTYPE, dtype, False, "only floats are not finite, whatever they were made from"),)
    return _classed(dtype)


def _classed(dtype: str) -> tuple[Part, ...]:
    if not dtype:
        return ()
    class_ = _CLASSES.get(dtype)
    if class_ is None:
        return (Part(PartName.DTYPE, dtype, True, "a pattern of its own"),)
    return (
        Part(PartName.CLASS, class_, True, "kernels are written for a class of dtypes"),
        Part(PartName.DTYPE, dtype, False, "one kernel mostly serves the whole class; split by it where it does not"),
    )


def kernel(operator: str) -> str:
    """`aten::_foreach_sqrt_.default` -> `aten::sqrt`: what does the work of an operator and of its other forms."""
    space, _, name = operator.partition("::")
    base = name.partition(".")[0].removeprefix("_foreach_")
    base = base.removesuffix("_") if not base.endswith("__") else base
    return _INSIDE.get(f"{space}::{base}", f"{space}::{base}")


def _operator(detail: str) -> tuple[str, str]:
    """`aten::gelu float32` -> operator and the rest; empty where no operator leads."""
    first, _, rest = detail.partition(" ")
    return (first, rest) if "::" in first else ("", "")


def _nature(kind: Kind) -> str:
    if kind in _NON_FINITE or kind is Kind.TRAIN_NON_FINITE:
        return NOT_FINITE
    if kind in _NUMBERS or kind.stage is Stage.TRAIN:
        return "wrong numbers"
    return f"wrong {kind.reason}"


def _said(message: str) -> str:
    """The message as a pattern: without numbers, paths, and the names a model gives its methods and parameters."""
    return clean_detail(_PLACE.sub("NAME", _CALL.sub("CALL", masked(_SIZES.sub("0", message)))))
