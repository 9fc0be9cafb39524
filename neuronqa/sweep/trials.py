"""A file of trials, one JSON object a line: what is done stays done, whenever the process that makes them ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from neuronqa.domain.identity import canonical_json, relaxed, strict
from neuronqa.domain.trial import NOTHING, Plant, Trial
from neuronqa.errors import BadInput
from neuronqa.sweep.certification import Assignment

Name = tuple[str, str, str]
_BARREN: Final = "barren"
"""Key of a line that says of an assignment, instead of a trial, that its workload takes no trial in its variant."""


class TrialLog:
    """Trials in the order in which they were made, in a file if there is one.

    The file is only appended to; of a line that was cut off, the trial is made again. Raises BadInput for a file of
    something else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._trials: dict[Name, Trial] = {}
        self._barren: set[tuple[str, str]] = set()
        text = path.read_text("utf-8") if path and path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        for number, line in enumerate(whole.splitlines(), 1):
            self._take(line, number)
        if torn and path:
            path.write_text(f"{whole}\n" if whole else "", "utf-8")

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials.values())

    def __len__(self) -> int:
        return len(self._trials)

    def append(self, given: Assignment, trials: Iterable[Trial]) -> None:
        """Write what came of one assignment. No plant tried: the workload takes none, and is not asked again."""
        made = list(trials)
        rows = [strict(asdict(one)) for one in made]
        if all(one.plant.kind == NOTHING for one in made):
            rows.append({_BARREN: [given.workload.hash, str(given.variant)]})
            self._barren.add((given.workload.hash, str(given.variant)))
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        self._trials.update((_name(one.workload, one.variant, one.plant), one) for one in made)

    def remaining(self, assignments: Iterable[Assignment]) -> Iterator[Assignment]:
        """The assignments without what is done."""
        for one in assignments:
            workload, variant = one.workload.hash, str(one.variant)
            left = tuple(plant for plant in one.plants if _name(workload, variant, plant) not in self._trials)
            if left and (workload, variant) not in self._barren:
                yield replace(one, plants=left)

    def _take(self, line: str, number: int) -> None:
        try:
            row = relaxed(json.loads(line))
            if _BARREN in row:
                workload, variant = row[_BARREN]
                self._barren.add((workload, variant))
                return
            trial = Trial(**{**row, "plant": Plant(**row["plant"])})
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f"line {number} is no trial: {error}",
                where=str(self._path),
                hint="name a file that `neuronqa controls` wrote, or a new one",
            ) from error
        self._trials[_name(trial.workload, trial.variant, trial.plant)] = trial


def _name(workload: str, variant: str, plant: Plant) -> Name:
    return workload, variant, canonical_json([plant.kind, plant.fault])
