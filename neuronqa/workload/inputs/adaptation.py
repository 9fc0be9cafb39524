"""What a model is given beyond the first guess and what is left out: learnt from its errors or told by a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """A value: repair goes from one to the next, and the last is kept."""

    forms: Mapping[str, str] = field(default_factory=dict)
    """The form chosen for an argument that comes in several, by its label."""
    extra: frozenset[str] = frozenset()
    """Optional arguments that are given nevertheless."""
    without: frozenset[str] = frozenset()
    """Optional arguments that are not given."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """`argument/axis`: the size a model asked for."""
    placeholders: Mapping[str, int] = field(default_factory=dict)
    """How many placeholder tokens stand for each modality."""
    labels: bool = True
    refused: bool = False
    """The head takes labels and says that it has no loss for them: none are left out that could be used."""
    train: bool = True

    def given(self, *names: str) -> Adaptation:
        return replace(self, extra=self.extra | set(names), without=self.without - set(names))

    def dropped(self, *names: str) -> Adaptation:
        return replace(self, without=self.without | set(names), extra=self.extra - set(names))

    def formed(self, name: str, label: str) -> Adaptation:
        return replace(self, forms={**self.forms, name: label}, placeholders={})

    def sized(self, name: str, axis: int, size: int) -> Adaptation:
        return replace(self, sizes={**self.sizes, f"{name}/{axis}": size})

    def placed(self, modality: str, count: int) -> Adaptation:
        return replace(self, placeholders={**self.placeholders, modality: count})

    def merged(self, base: Adaptation) -> Adaptation:
        """This one, on top of `base`."""
        return Adaptation(
            forms={**base.forms, **self.forms},
            extra=(base.extra | self.extra) - self.without,
            without=(base.without | self.without) - self.extra,
            sizes={**base.sizes, **self.sizes},
            placeholders={**base.placeholders, **self.placeholders},
            labels=base.labels and self.labels,
            refused=base.refused or self.refused,
            train=base.train and self.train,
        )

    def told(self) -> tuple[str, ...]:
        """One short text for each difference from the first guess, in a fixed order."""
        texts = [f"{name} as {label}" for name, label in sorted(self.forms.items())]
        texts += [f"with {name}" for name in sorted(self.extra)]
        texts += [f"without {name}" for name in sorted(self.without)]
        texts += [f"{place} sized {size}" for place, size in sorted(self.sizes.items())]
        texts += [f"{count} {modality} placeholders" for modality, count in sorted(self.placeholders.items())]
        texts += [] if self.labels else ["without labels" + (", which the head refuses" if self.refused else "")]
        texts += [] if self.train else ["in evaluation mode"]
        return tuple(texts)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"extra": sorted(self.extra), "without": sorted(self.without)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Adaptation:
        """Raises TypeError or ValueError for what :meth:`to_json` did not write."""
        return cls(**{**value, "extra": frozenset(value["extra"]), "without": frozenset(value["without"])})
