"""A fault planted on purpose to see whether it is noticed: what one such trial found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from neuronqa.domain.observation import OpUse
from neuronqa.domain.outcome import AtFault, Check, Outcome, Standing

EFFECTIVE: Final = 2.0
"""Tolerances by which a fault must move a deciding tensor, or a curve, for missing it to be a miss."""
CERTAIN: Final = 4.0
"""The same for a fault that may serve as a control in a sweep."""
NOTHING: Final = "nothing"
"""The kind of a run in which nothing is planted, on a device that is right: the first of the good twins."""
HARMLESS: Final = 0.5
"""A good twin may not move anything by more."""

WHOLES: Final = {
    "aten::_safe_softmax": "aten::_softmax",
    "aten::add.Scalar": "aten::add.Tensor",
    "aten::add_.Scalar": "aten::add_.Tensor",
    "aten::div.Scalar": "aten::div.Tensor",
    "aten::embedding": "aten::index_select",
    "aten::mean": "aten::mean.dim",
    "aten::mul.Scalar": "aten::mul.Tensor",
    "aten::mul_.Scalar": "aten::mul_.Tensor",
}
"""Operators that a search sees whole, and the one that does their work inside (aten/src/ATen/native)."""
_LISTS: Final = "aten::_foreach_"
"""Operators on lists of tensors, which call the one on a tensor for each."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """What is planted, and who has to notice. `check` is empty for a good twin, which nobody may notice."""

    kind: str
    op: str
    check: str = ""
    fault: Mapping[str, object] = field(default_factory=dict)
    numeric: bool = True
    """Does it change numbers? Its effect is then measured; any other fault takes effect wherever it can act."""
    culprit: str = ""
    """What a search has to name, if not the operator: a fault that acts between operators is none's."""
    deadline_s: float = 60.0
    removable: bool = False
    """Does the process it is planted in outlive it, and forget it when it is taken out?"""

    @property
    def good(self) -> bool:
        return not self.check

    def acts(self, used: Iterable[OpUse]) -> bool:
        """Does a run with these operators use one it acts on? A plant without operators acts on every run."""
        return not self.op or any(matches(self.op, use.op) for use in used)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One plant in one workload, beside the same run without it."""

    plant: Plant
    family: str
    workload: str
    variant: str
    acted: bool
    """Did the workload use what the plant acts on?"""
    effect: float
    """The largest distance it moved a deciding tensor or curve, in tolerances; infinite for what is not numeric."""
    plain: Mapping[str, str]
    """Outcomes by check without the plant."""
    found: Mapping[str, str]
    blamed: str = ""
    """The operator a search named."""
    seconds: float = 0.0

    @property
    def effective(self) -> bool:
        return self.acted and self.effect >= EFFECTIVE

    @property
    def noticed_by(self) -> tuple[str, ...]:
        """Checks that fail with the plant and did not fail without it; for no plant at all, that blame the device."""
        if self.plant.kind == NOTHING:
            return tuple(check for check, text in self.found.items() if _blames_device(text))
        return tuple(
            check for check, text in self.found.items() if _fails(text) and not _fails(self.plain.get(check, ""))
        )

    @property
    def right_cause(self) -> bool | None:
        """Is what was blamed the culprit? None where nothing was to be blamed."""
        if not self.plant.numeric or not self.plant.op or Check.PARITY.value not in self.noticed_by:
            return None
        culprit, blamed = self.plant.culprit or self.plant.op, self.blamed.partition(" ")[0]
        return matches(culprit, blamed) or matches(culprit, _inside(blamed))


def matches(patterns: str, op: str) -> bool:
    """Is `op` one of `patterns` (joined by `|`, `*` as a wildcard, with or without the overload)?"""
    base = op.rpartition(".")[0] if "." in op else op
    return any(fnmatchcase(name, one) for one in patterns.split("|") for name in (op, base))


def _inside(op: str) -> str:
    """The operator that does the work of `op`: itself, if no other does."""
    return WHOLES.get(op, op.replace(_LISTS, "aten::"))


def _blames_device(text: str) -> bool:
    outcome = Outcome.parse(text)
    return outcome.standing is Standing.FAIL and outcome.rules.at_fault is AtFault.DEVICE


def _fails(text: str) -> bool:
    return bool(text) and Outcome.parse(text).standing is Standing.FAIL
