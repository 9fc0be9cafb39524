"""The configs: every one that is wanted and not there yet, over a few connections, each kept as it comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from neuronqa.catalog import config
from neuronqa.catalog.hub import configs
from neuronqa.catalog.hub.client import HubClient
from neuronqa.catalog.hub.configs import Fetched
from neuronqa.catalog.hub.journal import Journal, read
from neuronqa.catalog.hub.pages import Listed, Place
from neuronqa.catalog.hub.progress import RESUME, Pace, Report
from neuronqa.catalog.snapshot import Snapshot
from neuronqa.catalog.status import Absence
from neuronqa.errors import EnvironmentFault

FILE: Final = "configs.jsonl"
CONNECTIONS: Final = 8
BROKEN_OFF: Final = 40
"""So many failed fetches in a row are an outage, not bad luck."""


@dataclass
class Known:
    """What came of each id: the hash of its config, or why there is none. Texts stay in their files."""

    configs: dict[str, str] = field(default_factory=dict)
    absences: dict[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.configs or name in self.absences

    def add(self, name: str, fetched: Fetched) -> None:
        if fetched.text is None:
            self.absences[name] = fetched.absence
        else:
            self.configs[name] = config.text_hash(fetched.text)


def fetch(listed: Listed, before: Snapshot | None, work: Path, client: HubClient, report: Report) -> Known:
    """Fetch what is missing. Raises EnvironmentFault when the Hub stops answering; what came until then is kept.

    A fetch that failed in an earlier run is missing still; one that fails in this run is not tried again in it.
    """
    known = _unchanged(listed, before)
    for name, fetched in _kept(listed, work):
        known.add(name, fetched)
    missing = [name for name, place in listed.places.items() if place.wanted and name not in known]
    pace = Pace(report, listed.wanted, listed.wanted - len(missing))
    with Journal(work / FILE) as journal:
        for name, fetched in _parallel(missing, listed.places, client):
            journal.append(_line(name, listed.places[name], fetched))
            journal.flush()
            known.add(name, fetched)
            pace.step(client.budget.waited_s)
    return known


def texts(work: Path) -> Iterator[str]:
    """Every config text that was fetched."""
    return (line["text"] for line in read(work / FILE) if "text" in line)


def _unchanged(listed: Listed, before: Snapshot | None) -> Known:
    """Configs and lasting absences of commits that an earlier snapshot already has. A licence may have been accepted
    since, so what was gated is asked again."""
    known = Known()
    for entry in before.entries() if before else ():
        place = listed.places.get(entry.id)
        if place is None or not place.wanted or not entry.revision or place.revision != entry.revision:
            continue
        if entry.config is not None:
            known.configs[entry.id] = entry.config
        elif Fetched(None, entry.absence).final and entry.absence != Absence.GATED:
            known.absences[entry.id] = entry.absence
    return known


def _kept(listed: Listed, work: Path) -> Iterator[tuple[str, Fetched]]:
    """What this pull had already fetched before it was interrupted."""
    for line in read(work / FILE):
        place = listed.places.get(line["id"])
        fetched = Fetched(line.get("text"), line.get("absence", ""))
        if place is not None and place.revision == line["revision"] and fetched.final:
            yield line["id"], fetched


def _line(name: str, place: Place, fetched: Fetched) -> dict[str, Any]:
    found = {"absence": fetched.absence} if fetched.text is None else {"text": fetched.text}
    return {"id": name, "revision": place.revision, **found}


def _parallel(names: list[str], places: dict[str, Place], client: HubClient) -> Iterator[tuple[str, Fetched]]:
    """Results as they come, with a bounded number under way."""
    failed = 0
    stop = threading.Event()
    waiting: dict[Future[Fetched], str] = {}
    todo = iter(names)

    def one(name: str) -> Fetched:
        return Fetched(None) if stop.is_set() else configs.fetch(client, name, places[name].revision)

    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="pull") as pool:
        try:
            while True:
                while len(waiting) < 2 * CONNECTIONS and (name := next(todo, None)) is not None:
                    waiting[pool.submit(one, name)] = name
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    fetched = future.result()
                    failed = 0 if fetched.final else failed + 1
                    yield waiting.pop(future), fetched
                if failed >= BROKEN_OFF:
                    raise EnvironmentFault("the Hub stopped answering", where=client.endpoint, hint=RESUME)
        finally:
            stop.set()
