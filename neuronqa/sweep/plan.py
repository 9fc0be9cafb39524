"""Catalog -> plan: a listing outcome for every entry, keys and a workload for every config, weights for every group.

Configs are read by a child process (`python -m neuronqa.workload.planner`), because only it may import transformers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any, Self

from neuronqa import workload as workload_package
from neuronqa.catalog import Catalog
from neuronqa.catalog.status import from_facts
from neuronqa.db.store import Store
from neuronqa.domain.catalog import Entry, ListingStatus
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import Outcome
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.workload import Workload
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.sweep.answers import Answer, answers, source_sha256
from neuronqa.workload.version import BUILDER

PLANNER = (sys.executable, "-m", "neuronqa.workload.planner")
VERSIONED = ("torch", "transformers", "timm", "diffusers")

Advance = Callable[[int], None]
"""Called with the number of distinct configs planned so far."""


@dataclass(frozen=True, slots=True)
class _Config:
    """What the planner said of one config, without the workload's body."""

    listing: Outcome
    kernel_key: str
    graph_key: str
    workload: str
    model_type: str
    class_name: str


def installed_versions() -> dict[str, str]:
    """Versions of what decides a plan, read without importing it. Absent packages are left out."""
    found = {"builder": BUILDER}
    for name in VERSIONED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def plan_key(catalog_sha256: str, versions: Mapping[str, str]) -> str:
    """The name of a plan: same catalog and same versions, same plan."""
    return content_hash({"catalog": catalog_sha256, "versions": dict(versions)})


def make_plan(catalog: Catalog, store: Store, advance: Advance = lambda _: None) -> int:
    """Plan every entry of `catalog` and store it; returns the plan's id. A plan that is stored already is reused."""
    versions = installed_versions()
    key = plan_key(catalog.info.sha256, versions)
    known = store.known_plan(key)
    if known is not None:
        return known
    planned: dict[str, _Config] = {}
    return store.save_plan(
        key,
        catalog.info,
        versions,
        _planned_workloads(catalog, planned, advance),
        ((entry, _group(entry, planned)) for entry in catalog.entries()),
    )


def _group(entry: Entry, planned: Mapping[str, _Config]) -> PlanGroup:
    if entry.workload is not None:
        workload = Workload.from_json(entry.workload)
        return PlanGroup(
            listing=ListingStatus.ELIGIBLE.outcome(),
            kernel_key=workload.hash,
            graph_key=workload.hash,
            workload=workload.hash,
            model_type=workload.spec.family,
        )
    told = from_facts(entry)
    if told is not None:
        status, reason = told
        return PlanGroup(listing=status.outcome(reason), model_type=entry.model_type)
    config = planned.get(entry.config or "")
    if config is None:
        raise BadInput("the catalog has no config for an entry", where=entry.id, hint="verify or pull it again")
    return PlanGroup(
        listing=config.listing,
        kernel_key=config.kernel_key,
        graph_key=config.graph_key,
        workload=config.workload,
        model_type=config.model_type or entry.model_type,
        class_name=config.class_name,
    )


def _planner(versions: Mapping[str, str]) -> dict[str, Any]:
    """All that an answer of the planner depends on, besides the config."""
    package = Path(workload_package.__file__).parent
    return {"versions": dict(versions), "command": PLANNER, "source": source_sha256(package)}


def plan_configs(catalog: Catalog) -> Iterator[Answer]:
    """What the planner says of each config that decides something: where facts do not tell an entry's status."""
    undecided = {entry.config for entry in catalog.entries() if entry.config is not None and from_facts(entry) is None}

    def configs() -> Iterator[tuple[str, str]]:
        return ((name, text) for name, text in catalog.configs() if name in undecided)

    return answers(configs, ask_planner, _planner(installed_versions()))


def _planned_workloads(catalog: Catalog, planned: dict[str, _Config], advance: Advance) -> Iterator[Workload]:
    """Yield every distinct workload and fill `planned` on the way."""
    for entry in catalog.entries():
        if entry.workload is not None:
            yield Workload.from_json(entry.workload)
    seen: set[str] = set()
    for answer in plan_configs(catalog):
        workload = answer.get("workload")
        body = Workload.from_json(workload) if workload else None
        planned[answer["hash"]] = _Config(
            listing=ListingStatus(answer["status"]).outcome(answer.get("reason", "")),
            kernel_key=answer.get("kernel_key") or "",
            graph_key=answer.get("graph_key") or "",
            workload=body.hash if body else "",
            model_type=answer.get("model_type") or "",
            class_name=answer.get("class_name") or "",
        )
        advance(len(planned))
        if body is not None and body.hash not in seen:
            seen.add(body.hash)
            yield body


def ask_planner(configs: Iterable[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Send (hash, config text) pairs to a planner child, yield its answers. No child is started for no configs.

    Raises EnvironmentFault if the child cannot start or dies early, with the last line it wrote.
    """
    iterator = iter(configs)
    first = next(iterator, None)
    if first is None:
        return
    with _Planner(chain((first,), iterator)) as planner:
        yield from planner.answers()


class _Planner:
    """The planner child, fed by one thread and listened to by another, so that no pipe can fill up."""

    def __init__(self, configs: Iterable[tuple[str, str]]) -> None:
        self._configs = configs
        self._child = subprocess.Popen(
            PLANNER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._sent = 0
        self._failure: BaseException | None = None
        self._said: deque[str] = deque(maxlen=20)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._feed, self._listen)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()

    def answers(self) -> Iterator[dict[str, Any]]:
        answered = 0
        for line in self._child.stdout or ():
            answered += 1
            yield json.loads(line)
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        if self._child.wait() != 0 or answered != self._sent:
            said = next((line.strip() for line in reversed(self._said) if line.strip()), "it said nothing")
            raise EnvironmentFault(f"the planner died after {answered} configs: {said}", hint="run `neuronqa doctor`")

    def _feed(self) -> None:
        stdin = self._child.stdin
        assert stdin is not None
        with suppress(BrokenPipeError), stdin:
            try:
                for hash_, text in self._configs:
                    stdin.write(json.dumps({"hash": hash_, "text": text}) + "\n")
                    self._sent += 1
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - carried to the thread that reads the answers
                self._failure = error

    def _listen(self) -> None:
        self._said.extend(self._child.stderr or ())
