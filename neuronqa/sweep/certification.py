"""Certifying checks: plant every kind of fault and good twin into many workloads, and count what was noticed.

A fault is *effective* where it moves a deciding tensor or curve by at least twice its tolerance; a good twin may move
none by more than half. What lies between is reported and has no target.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, Final

from neuronqa.catalog.catalog import Catalog
from neuronqa.device.plantable import plants, unguarded
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.policy import Thresholds
from neuronqa.domain.trial import CERTAIN, HARMLESS, Plant, Trial
from neuronqa.domain.workload import Workload
from neuronqa.sweep.plan import ask_planner

LEFT: Final = 0.05
POOL_TRIALS: Final = 20
CONFIGS_PER_WORKLOAD: Final = 8
AHEAD: Final = 1
"""Assignments handed out before a process is free, so that none waits for the next."""
BINS: Final = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 64.0, math.inf)
NAMED: Final = 50


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Plants for one workload in one variant: one task of one process."""

    workload: Workload
    variant: Variant
    plants: tuple[Plant, ...]


def choose(catalog: Catalog, count: int) -> list[Workload]:
    """The first `count` workloads of the catalog that differ in model type, then, if there are too few, in anything."""
    different: dict[str, Workload] = {}
    others: dict[str, Workload] = {}
    for answer in ask_planner(islice(catalog.configs(), CONFIGS_PER_WORKLOAD * count)):
        if answer["status"] != ListingStatus.ELIGIBLE.value or not answer.get("workload"):
            continue
        workload = Workload.from_json(answer["workload"])
        if workload.spec.family not in different:
            different[workload.spec.family] = workload
        else:
            others.setdefault(workload.hash, workload)
        if len(different) == count:
            break
    return [*different.values(), *others.values()][:count]


def assignments(
    workloads: Iterable[Workload], variants: Sequence[Variant], device: str, kinds: frozenset[str]
) -> list[Assignment]:
    """Every plant in every workload; `kinds` narrows the plants unless it is empty."""
    made = []
    for workload in workloads:
        for variant in variants:
            chosen = tuple(one for one in plants(device, variant) if not kinds or one.kind in kinds)
            if chosen:
                made.append(Assignment(workload=workload, variant=variant, plants=chosen))
    return made


def divided(given: Iterable[Assignment], together: int) -> Iterator[Assignment]:
    """The same in parts of so many plants. A part is written down as a whole, so a short one loses little."""
    for one in given:
        for start in range(0, len(one.plants), together):
            yield replace(one, plants=one.plants[start : start + together])


def carry_out(
    given: Iterable[Assignment], order: BuildOrder, thresholds: Thresholds, workers: int
) -> Iterator[tuple[Assignment, list[Trial]]]:
    """Make the trials, an assignment at a time in each of `workers` processes, which import torch; this one does not.

    Assignments are drawn as they are needed. Closing the iterator ends the processes after what they are at.
    """
    waiting = iter(given)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _prepare, (order, thresholds)) as pool:
        running = {pool.submit(_make_trials, one): one for one in islice(waiting, workers + AHEAD)}
        try:
            while running:
                for task in wait(running, return_when=FIRST_COMPLETED).done:
                    running |= {pool.submit(_make_trials, one): one for one in islice(waiting, 1)}
                    yield running.pop(task), task.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_CERTIFIER: list[Any] = []


def _prepare(order: BuildOrder, thresholds: Thresholds) -> None:
    from neuronqa.worker import linux
    from neuronqa.worker.certify import Certifier

    linux.die_with_parent(os.getppid())
    _CERTIFIER.append(Certifier(order, thresholds))


def _make_trials(given: Assignment) -> list[Trial]:
    return list(_CERTIFIER[0].trials(given.workload, given.variant, given.plants))


def summary(trials: Iterable[Trial], device: str) -> dict[str, Any]:
    """The figures of a certification as JSON values."""
    made = [one for one in trials if one.acted]
    faults = [one for one in made if not one.plant.good]
    twins = [one for one in made if one.plant.good and one.effect <= HARMLESS]
    effective = [one for one in faults if one.effective]
    asked = [one for one in effective if one.right_cause is not None]
    return {
        "schema_version": 1,
        "faults": len({one.plant.kind for one in faults}),
        "workloads": len({one.workload for one in made}),
        "planted": len(faults),
        "effective": len(effective),
        "detected": sum(bool(one.noticed_by) for one in effective),
        "first_deviation_asked": len(asked),
        "first_deviation_right": sum(one.right_cause is True for one in asked),
        "good_twins": len(twins),
        "false_alarms": sum(bool(one.noticed_by) for one in twins),
        "false_alarms_below": upper_bound(sum(bool(one.noticed_by) for one in twins), len(twins)),
        "by_check": _by_check(faults),
        "by_kind": _by_kind(made),
        "power": _power(faults),
        "pool": _pool(faults),
        "unguarded": list(unguarded(device)),
        "missed": [_named(one) for one in effective if not one.noticed_by][:NAMED],
        "wrong_cause": [_named(one) for one in asked if not one.right_cause][:NAMED],
        "alarms": [_named(one) for one in twins if one.noticed_by][:NAMED],
    }


def upper_bound(found: int, trials: int) -> float:
    """The rate that is not exceeded with 95 % confidence, by the exact binomial bound (Clopper and Pearson)."""
    if not trials:
        return 1.0
    low, high = found / trials, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chance = sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(found + 1))
        low, high = (rate, high) if chance > LEFT else (low, rate)
    return high


def _by_check(faults: list[Trial]) -> dict[str, Any]:
    """By the check that has to notice: whether it did itself, and whether any did."""
    result = {}
    for check in sorted({one.plant.check for one in faults}):
        mine = [one for one in faults if one.plant.check == check]
        effective = [one for one in mine if one.effective]
        result[check] = {
            "planted": len(mine),
            "effective": len(effective),
            "detected": sum(bool(one.noticed_by) for one in effective),
            "detected_by_it": sum(check in one.noticed_by for one in effective),
        }
    return result


def _by_kind(made: list[Trial]) -> dict[str, Any]:
    kinds: dict[str, list[Trial]] = defaultdict(list)
    for one in made:
        kinds[one.plant.kind].append(one)
    return {
        kind: {
            "check": trials[0].plant.check,
            "planted": len(trials),
            "effective": sum(one.effective for one in trials),
            "noticed": sum(bool(one.noticed_by) for one in trials),
            "noticed_by": dict(Counter(check for one in trials for check in one.noticed_by)),
            "cause_right": sum(one.right_cause is True for one in trials),
            "cause_asked": sum(one.right_cause is not None for one in trials),
            "effects": _quantiles([one.effect for one in trials]),
        }
        for kind, trials in sorted(kinds.items())
    }


def _power(faults: list[Trial]) -> list[dict[str, Any]]:
    """How often faults of each size are noticed."""
    numeric = [one for one in faults if one.plant.numeric]
    rows = []
    for low, high in pairwise(BINS):
        inside = [one for one in numeric if low <= one.effect < high or (math.isinf(high) and one.effect == high)]
        rows.append({"from": low, "planted": len(inside), "noticed": sum(bool(one.noticed_by) for one in inside)})
    return rows


def _pool(faults: list[Trial]) -> list[str]:
    """Kinds fit to be controls in a sweep: noticed every time they were certain to act, and often enough to say so."""
    pool = []
    for kind in sorted({one.plant.kind for one in faults}):
        certain = [one for one in faults if one.plant.kind == kind and one.effect >= CERTAIN]
        if len(certain) >= POOL_TRIALS and all(one.noticed_by for one in certain):
            pool.append(kind)
    return pool


def _quantiles(values: list[float]) -> list[float]:
    ranked = sorted(values)
    return [ranked[0], ranked[len(ranked) // 2], ranked[-1]]


def _named(one: Trial) -> dict[str, Any]:
    return {
        "kind": one.plant.kind,
        "family": one.family,
        "variant": one.variant,
        "effect": one.effect,
        "noticed_by": list(one.noticed_by),
        "blamed": one.blamed,
        "outcomes": dict(one.found),
    }
