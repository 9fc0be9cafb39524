"""`python -m neuronqa.catalog.offline.generate FOLDER`: write the offline edition. The child process of its driver."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import neuronqa
from neuronqa.catalog import offline
from neuronqa.catalog.offline import bodies, calibration, shapes
from neuronqa.catalog.offline.architectures import Configs, heads
from neuronqa.catalog.offline.bodies import Body
from neuronqa.catalog.offline.calibration import Calibration, download_curve
from neuronqa.catalog.offline.drafts import Draft
from neuronqa.catalog.offline.draws import Draws
from neuronqa.catalog.offline.families import Cell
from neuronqa.catalog.offline.population import populate, ranked
from neuronqa.catalog.offline.shapes import Shape
from neuronqa.catalog.resolve import TOP
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.domain.catalog import Entry, Source

VARIANTS: Final = 3
"""Variants of a type nobody has published shapes of here; a type with shapes gets more, by its weight in the mix."""
POPULAR_VARIANTS: Final = 24


def main(folder: str) -> None:
    figures = calibration.load()
    cells = [Cell(head.model_type, head.class_name, head.task) for head in heads()]
    known = shapes.load()
    configs = Configs({name: found[0].config for name, found in known.items()})
    pool = _pool(figures, configs, known, sorted({cell.model_type for cell in cells}))
    drafts = populate(figures, cells, pool, configs.accepts, offline.SIZE, offline.SEED)
    downloads = download_curve(len(drafts), figures.number("downloads/first"), figures.rows("downloads/slopes"))
    order = ranked(drafts, downloads, figures.table("downloads/modality"))
    _write(Path(folder), drafts, order, downloads)


def _pool(
    figures: Calibration, configs: Configs, known: Mapping[str, Sequence[Shape]], model_types: Sequence[str]
) -> dict[str, list[Body]]:
    """Bodies of each model type; classes that refuse their own defaults have none."""
    popular = _popular(figures)
    return {
        name: bodies.bodies(
            name,
            configs.default(name),
            known.get(name, ()),
            POPULAR_VARIANTS if name in popular else VARIANTS,
            configs.accepts,
            Draws(offline.SEED, f"bodies/{name}"),
        )
        for name in model_types
    }


def _popular(figures: Calibration) -> set[str]:
    named = [figure.value for key, figure in figures.figures.items() if key.startswith("types/")]
    return {str(name) for value in named if isinstance(value, dict) for name in value}


def _write(folder: Path, drafts: Sequence[Draft], order: Sequence[int], downloads: Sequence[int]) -> None:
    made_by = {
        "neuronqa": neuronqa.__version__,
        **offline.versions(),
        "seed": offline.SEED,
        "key": offline.key(),
    }
    names = _names(drafts)
    with SnapshotWriter(folder, TOP, Source.SYNTHETIC, made_by=made_by) as writer:
        for rank, index in enumerate(order, start=1):
            draft = drafts[index]
            writer.add(
                Entry(
                    id=names[index],
                    rank=rank,
                    downloads=downloads[rank - 1],
                    library=draft.library,
                    task=draft.task,
                    model_type=draft.model_type,
                    architectures=(draft.class_name,) if draft.class_name else (),
                    custom_code=draft.custom_code,
                    quantization=draft.quantization,
                    parameters=draft.parameters,
                    base_model="" if draft.base is None else names[draft.base],
                    config=None if draft.text is None else writer.add_config(draft.text),
                    absence=draft.absence,
                )
            )


def _names(drafts: Sequence[Draft]) -> list[str]:
    """Ids in the reserved namespace, numbered within their label."""
    seen: Counter[str] = Counter()
    names = []
    for draft in drafts:
        seen[draft.label] += 1
        names.append(f"synthetic/{draft.label}-{seen[draft.label]:05d}")
    return names


if __name__ == "__main__":
    main(sys.argv[1])
