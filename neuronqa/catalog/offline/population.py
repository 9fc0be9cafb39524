"""The whole population: how many of what, in which order of popularity."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Final

from neuronqa.catalog.offline.bodies import Accepts, Body
from neuronqa.catalog.offline.calibration import Calibration, apportion, zipf
from neuronqa.catalog.offline.drafts import Draft
from neuronqa.catalog.offline.draws import Draws
from neuronqa.catalog.offline.families import HUB_TASK, Cell, Families
from neuronqa.catalog.offline.strangers import Strangers
from neuronqa.catalog.status import Absence

Heads = Mapping[tuple[str, str], str]
"""(model type, Hub task) to the class that serves it."""
FAMOUS: Final = 12_000
"""Ranks that are dealt out by modality; they have most of the downloads."""
TEXT: Final = ("text-generation", "text2text-generation")
SLICE: Final = frozenset({*TEXT, *HUB_TASK.values()})
"""Hub tasks of text-to-text models, which the mix counts as one."""
LIBRARIES: Final = {"sentence-similarity": "sentence-transformers"}


def populate(
    calibration: Calibration,
    cells: Sequence[Cell],
    pool: Mapping[str, Sequence[Body]],
    accepts: Accepts,
    size: int,
    seed: int,
) -> list[Draft]:
    """Make `size` drafts in no particular order. `cells` are all heads of the installed transformers."""
    statuses = calibration.tables("status")
    known = {cell.model_type for cell in cells}
    counts = apportion(size, {**statuses, "plain": 1 - sum(statuses.values())})
    drafts: list[Draft] = []
    families = Families(calibration, pool, seed)
    drafts.extend(families.one(cell) for cell in cells[: counts["plain"]])
    for place, cell in enumerate(cells[: counts["plain"] - len(drafts)]):
        if len(pool[cell.model_type]) > 1:
            drafts.append(families.one(cell, 1 + place))
    heads = round(counts["plain"] * calibration.number("draft_heads"))
    plain = counts["plain"] - heads
    for cell, count in _rest(_mix(calibration, cells, plain), drafts, plain).items():
        families.fill(cell, count, drafts)
    bases = [index for index, draft in enumerate(drafts) if draft.task in ("text-generation", "translation")]
    strangers = Strangers(seed, bases or range(len(drafts)), drafts, known, accepts)
    strangers.draft_heads(heads)
    _add_strangers(strangers, counts, calibration)
    _forget_bases(drafts, calibration, seed)
    return drafts


def _add_strangers(strangers: Strangers, counts: Mapping[str, int], calibration: Calibration) -> None:
    strangers.libraries(counts["non_transformers"], calibration.table("libraries"))
    strangers.adapters(counts["adapter"])
    strangers.ggufs(counts["gguf_only"])
    strangers.quantized(counts["quantized"])
    strangers.gated(counts["gated"])
    strangers.remote_code(counts["remote_code"])
    strangers.unknown_types(counts["unknown_model_type"])
    strangers.invalid(counts["config_invalid"])
    strangers.malformed(counts["config_malformed"])
    strangers.unreachable(counts["no_config"], Absence.ENTRY_NOT_FOUND)
    strangers.unreachable(counts["private_or_removed"], Absence.REPO_NOT_FOUND)
    strangers.unreachable(counts["disabled"], Absence.DISABLED)


def _mix(calibration: Calibration, cells: Sequence[Cell], total: int) -> dict[Cell, int]:
    """Entries per cell: tasks by share, types within a task by share, unnamed types by a Zipf law."""
    by_task: dict[str, dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        task = TEXT[0] if cell.task in TEXT else cell.task
        if cell.task == TEXT[1]:
            by_task[task][cell.model_type] = cell
        by_task[task].setdefault(cell.model_type, cell)
    by_task["sentence-similarity"] = by_task["feature-extraction"]
    found: dict[Cell, int] = {}
    tasks = {task: share for task, share in calibration.table("tasks").items() if by_task.get(task)}
    for task, count in apportion(total, tasks).items():
        shares = _types(calibration, task, list(by_task[task]))
        for model_type, number in apportion(count, shares).items():
            cell = by_task[task][model_type]
            found[Cell(cell.model_type, cell.class_name, task, LIBRARIES.get(task, cell.library))] = number
    return found


def _rest(wanted: Mapping[Cell, int], drafts: Sequence[Draft], total: int) -> dict[Cell, int]:
    """What is left to fill beside the models every class has, so that each task and the whole come out."""
    present = Counter((draft.model_type, draft.class_name) for draft in drafts)
    tasks = Counter(TEXT[0] if draft.task in SLICE else draft.task for draft in drafts)
    left: dict[Cell, float] = {}
    for task in dict.fromkeys(cell.task for cell in wanted):
        cells = {cell: count for cell, count in wanted.items() if cell.task == task}
        rest = {cell: max(0, count - present[cell.model_type, cell.class_name]) for cell, count in cells.items()}
        left |= apportion(max(0, sum(cells.values()) - tasks[task]), rest) if any(rest.values()) else {}
    return apportion(total - len(drafts), left)


def _types(calibration: Calibration, task: str, present: Sequence[str]) -> dict[str, float]:
    """Shares of the model types of one task."""
    figure = f"types/{task}"
    named = calibration.table(figure) if figure in calibration.figures else {}
    covered = calibration.number(f"{figure}/covered") if f"{figure}/covered" in calibration.figures else 1.0
    order = calibration.names(f"{figure}/order") if f"{figure}/order" in calibration.figures else []
    rest = [name for name in dict.fromkeys([*order, *present]) if name in present and name not in named]
    tail = zipf(rest, calibration.number("slope/types"), first=len(named) + 1)
    left = max(0.0, covered - sum(named.values()))
    whole = sum(tail.values()) or 1.0
    shares = {name: share for name, share in named.items() if name in present}
    return {**shares, **{name: left * weight / whole for name, weight in tail.items()}}


def _forget_bases(drafts: list[Draft], calibration: Calibration, seed: int) -> None:
    """Most lineage is not written down: keep as many declared bases as the Hub has."""
    draws = Draws(seed, "lineage")
    related = [draft for draft in drafts if draft.base is not None]
    plain = [draft for draft in related if draft.label.endswith(("-finetune", "-merge"))]
    wanted = calibration.number("families/declared") * len(drafts) - (len(related) - len(plain))
    for draft in plain:
        if not draws.chance(wanted / len(plain)):
            draft.base = None


def ranked(drafts: Sequence[Draft], downloads: Sequence[int], shares: Mapping[str, float]) -> list[int]:
    """Indices of drafts by rank: most popular first.

    The first ranks hold most of the downloads, so each of them goes to the modality that is furthest behind its share,
    and within it to the most popular draft.
    """
    by_popularity = sorted(range(len(drafts)), key=lambda index: (-drafts[index].popularity, index))
    queues: dict[str, deque[int]] = {name: deque() for name in shares}
    for index in by_popularity:
        if drafts[index].modality in queues:
            queues[drafts[index].modality].append(index)
    given = dict.fromkeys(shares, 0.0)
    famous: list[int] = []
    for total, count in zip(itertools.accumulate(downloads), downloads[:FAMOUS], strict=False):
        waiting = [name for name, queue in queues.items() if queue]
        if not waiting:
            break
        name = min(waiting, key=lambda name: given[name] - shares[name] * total)
        famous.append(queues[name].popleft())
        given[name] += count
    placed = set(famous)
    return famous + [index for index in by_popularity if index not in placed]
