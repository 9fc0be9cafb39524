"""What somebody published about a suite, beside what this sweep found: `catalogs/NAME/published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from neuronqa import bundled
from neuronqa.device.neuron.cost.compile_time import constants, published
from neuronqa.domain.catalog import CatalogInfo, Source
from neuronqa.domain.ladder import Gate

FILE: Final = "published.toml"
COMPILE_TAX: Final = "compile-tax"


@dataclass(frozen=True, kw_only=True)
class Beside:
    """One figure, published and here."""

    what: str
    published: float
    here: float
    unit: str
    source: str
    modelled: bool = False

    @property
    def error(self) -> float | None:
        """Of what is here, as a share of what was published."""
        return self.here / self.published - 1 if self.published else None


def beside(
    catalog: CatalogInfo, profile: str, gates: tuple[Gate, ...], states: Mapping[str, int]
) -> tuple[Beside, ...]:
    """The figures published about a whole bundled catalog on this profile; none about a part of one."""
    if catalog.source is not Source.BUNDLED or "[" in catalog.name:
        return ()
    path = bundled.folder("catalogs") / Path(catalog.name).name / FILE
    found = tomllib.loads(path.read_text("utf-8"))["figure"] if path.is_file() else []
    counted = [_counted(one, gates, states) for one in found if one["profile"] == profile]
    return (*counted, *(_first_steps() if catalog.name == COMPILE_TAX else ()))


def _counted(figure: Mapping[str, Any], gates: tuple[Gate, ...], states: Mapping[str, int]) -> Beside:
    """`rung`: entries that passed it; `outcome`: entries whose lowest missed rung says it."""
    if "rung" in figure:
        here = sum(gate.passed for gate in gates if gate.rung.value == figure["rung"])
    else:
        here = sum(n for label, n in states.items() if label.endswith(f" {figure['outcome']}"))
    return Beside(
        what=figure["what"], published=figure["published"], here=here, unit="entries", source=figure["source"]
    )


def _first_steps() -> Iterator[Beside]:
    """Modelled, by constants that were fitted on these very figures."""
    for run in published():
        yield Beside(
            what=f"first step of {run.name}",
            published=run.first_step_s,
            here=run.estimate(constants()),
            unit="s",
            source=run.source,
            modelled=True,
        )
