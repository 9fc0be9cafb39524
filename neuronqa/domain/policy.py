"""Which cases an entry must pass on which rung, at what tolerance: a value with a hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

from neuronqa.domain.case import Mode, Phase, Variant
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import LADDER, Check, Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Numbers the checks judge by. Ratios are to the CPU's own rounding error, so they need no list of models."""

    parity_ratio: float = 6.0
    """Device error over same-dtype CPU error, both against the float64 oracle, per tensor (root mean square)."""
    parity_gain_ratio: float = 8.0
    """The same for the least squares factor from the oracle: what all elements share stands out of their noise."""
    parity_peak_ratio: float = 16.0
    """The same for a tensor's largest element."""
    parity_power: float = 0.25
    """A tensor whose tolerance exceeds this share of its own scale is exempt, and counted: a wrong one could pass."""
    parity_coverage: float = 0.5
    """Share of the gradient tensors that must not be exempt; with fewer, parity is inconclusive."""
    train_steps: int = 20
    train_envelope: float = 8.0
    """Width of the envelope of loss and norms, in what rounding does to the CPU run."""
    train_floor: float = 0.001
    """Share of a norm, and of the fall of the loss, below which a difference says nothing about training."""
    graph_breaks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one case may use."""

    deadline_s: float = 60.0
    memory_mb: int = 4096
    probes: int = 8


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Required variants per rung. A rung that is not listed is not asked for, and a report says so."""

    name: str
    required: Mapping[Rung, tuple[Variant, ...]]
    thresholds: Thresholds = field(default_factory=Thresholds)
    limits: Limits = field(default_factory=Limits)

    @property
    def sha256(self) -> str:
        """Names what is asked, not what the file is called."""
        asked = self.to_json()
        del asked["name"]
        return content_hash(asked)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON; :meth:`from_json` reads it back."""
        return {
            "name": self.name,
            "required": {rung.value: [str(v) for v in variants] for rung, variants in self.required.items()},
            "thresholds": asdict(self.thresholds),
            "limits": asdict(self.limits),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Policy:
        """Raises ValueError or TypeError, saying which part, for what does not say a policy."""
        unknown = set(value) - {"name", "required", "thresholds", "limits"}
        if unknown:
            raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
        name = value.get("name")
        if not isinstance(name, str) or not name.strip():
            raise ValueError("it has no name")
        return cls(
            name=name,
            required=_required(value.get("required")),
            thresholds=_numbers(Thresholds, value.get("thresholds", {})),
            limits=_numbers(Limits, value.get("limits", {})),
        )

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """The rungs this policy asks for, lowest first; `registered` and `eligible` always."""
        asked = {Rung.REGISTERED, Rung.ELIGIBLE, *self.required}
        return tuple(rung for rung in LADDER if rung in asked)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every variant any rung requires, in a fixed order."""
        return tuple(sorted({v for variants in self.required.values() for v in variants}))

    def asks(self, rung: Rung) -> tuple[tuple[Variant, Check], ...]:
        """The (variant, check) pairs that must pass for `rung`."""
        return self._asked.get(rung, ())

    @cached_property
    def _asked(self) -> dict[Rung, tuple[tuple[Variant, Check], ...]]:
        """Every group of a plan is asked the same, a hundred thousand times."""
        return {
            rung: tuple((v, check) for v in variants for check in checks_of(rung, v))
            for rung, variants in self.required.items()
        }


@lru_cache
def checks_of(rung: Rung, variant: Variant) -> tuple[Check, ...]:
    """The checks that decide `rung` for a case run as `variant`."""
    return tuple(check for check in applicable(variant) if check.rung is rung)


def applies(check: Check, variant: Variant) -> bool:
    """Does `check` have a question to ask of a case run as `variant`?"""
    if check in (Check.COMPILE, Check.GRAPH):
        return variant.mode is Mode.COMPILE
    if check is Check.TRAIN:
        return variant.phase is Phase.TRAIN
    return check is not Check.FIT


@lru_cache
def applicable(variant: Variant) -> tuple[Check, ...]:
    """The checks that have one, in order."""
    return tuple(check for check in Check if applies(check, variant))


def _required(value: Any) -> dict[Rung, tuple[Variant, ...]]:
    """A rung that asks nothing would be passed by everybody, so each variant must have a check to answer there."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError("no rung requires any variant")
    required = {}
    for word, texts in value.items():
        rung = Rung(word)
        if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{word} must list variants, e.g. ['eager/fp32/train']")
        required[rung] = tuple(dict.fromkeys(Variant.parse(text) for text in texts))
        for variant in required[rung]:
            if not checks_of(rung, variant):
                raise ValueError(f"{word} has nothing to ask of {variant}")
    return required


_ZERO_ALLOWED: Final = ("graph_breaks", "probes")
_LARGEST: Final = 1e9
Numbers = TypeVar("Numbers", Thresholds, Limits)


def _numbers(cls: type[Numbers], value: Any) -> Numbers:
    """Check every number against the kind of its default; a float may be written as an integer."""
    defaults = asdict(cls())
    if not isinstance(value, Mapping):
        raise TypeError(f"{cls.__name__.lower()} must be a table")
    checked = {}
    for name, given in value.items():
        if name not in defaults:
            raise ValueError(f"there is no {cls.__name__.lower()[:-1]} {name!r}")
        kind = type(defaults[name])
        if type(given) not in (int, kind) or not 0 <= given < _LARGEST or (given == 0 and name not in _ZERO_ALLOWED):
            number = "a whole number" if kind is int else "a number"
            bound = "from 0" if name in _ZERO_ALLOWED else "above 0"
            raise ValueError(f"{name} must be {number} {bound}, not {given!r:.40}")
        checked[name] = kind(given)
    return cls(**checked)
