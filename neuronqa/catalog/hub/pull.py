"""`neuronqa catalog pull`: list, triage, fetch, freeze. It may be killed at any byte and goes on where it was.

A pull in the making is a folder with two journals: pages as the Hub gave them (with the address of the next one) and
configs as they came. Starting it again reads both and asks only for what is missing. The snapshot appears whole, under
its final name, at the end, and says when the pull was begun: so one that was killed before it removed its journals is
known to be done.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import huggingface_hub

import neuronqa
from neuronqa.catalog import config, rows
from neuronqa.catalog.hub import fetching, pages
from neuronqa.catalog.hub.client import HubClient
from neuronqa.catalog.hub.fetching import Known
from neuronqa.catalog.hub.pages import Listed
from neuronqa.catalog.hub.progress import Report
from neuronqa.catalog.snapshot import Snapshot, SnapshotWriter, finished
from neuronqa.catalog.verify import verify
from neuronqa.domain.catalog import Source
from neuronqa.errors import BadInput, EnvironmentFault

WORK: Final = ".pulling"
REQUEST: Final = "request.json"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is pulled. Kept with the journals, so that two different pulls are never mixed."""

    name: str
    endpoint: str
    limit: int


def pull(request: Request, home: Path, client: HubClient, report: Report = lambda _: None) -> Snapshot:
    """Pull, or go on pulling, into `home`; return the finished snapshot.

    `home` holds the finished snapshots of this name; the newest sound one lends the configs of commits that did not
    change. Raises EnvironmentFault when the Hub does not give what is asked or another process is pulling, BadInput for
    damaged journals and for a pull that was begun with other options.
    """
    work = home / WORK
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home):
        before = _sound(home)
        _forget_finished(before, work)
        begun = _keep(request, work)
        listed = pages.pull(request.limit, work, client, report)
        known = fetching.fetch(listed, before, work, client, report)
        final = _freeze(_made_by(request, begun, listed, before), request, known, before, work)
        shutil.rmtree(work)
    return Snapshot.open(final)


def _made_by(request: Request, begun: str, listed: Listed, before: Snapshot | None) -> dict[str, Any]:
    return {
        **asdict(request),
        "begun": begun,
        "refreshes": before.info.sha256 if before else "",
        "neuronqa": neuronqa.__version__,
        "huggingface_hub": huggingface_hub.__version__,
        "duplicates": listed.duplicates,
        "unreadable": listed.unreadable,
    }


def _freeze(made_by: dict[str, Any], request: Request, known: Known, before: Snapshot | None, work: Path) -> Path:
    """Write the snapshot beside the journals, then give it its name: the time it was finished."""
    made = work / "snapshot"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    now = datetime.now(UTC)
    created = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    with SnapshotWriter(made, request.name, Source.HUB, created=created, made_by=made_by) as writer:
        for text in _texts(set(known.configs.values()), before, work):
            writer.add_config(text)
        for rank, facts in enumerate(pages.facts(request.limit, work), start=1):
            found = {"config": known.configs.get(facts["id"]), "absence": known.absences.get(facts["id"])}
            writer.add(rows.entry_of({**facts, **{key: value for key, value in found.items() if value}, "rank": rank}))
    final = work.parent / now.strftime("%Y%m%dT%H%M%S.%fZ")
    made.rename(final)
    return final


def _texts(wanted: set[str], before: Snapshot | None, work: Path) -> Iterator[str]:
    """The text of each wanted hash, once: from the last snapshot, or from what was fetched."""
    for name, text in before.configs() if before else ():
        if name in wanted:
            wanted.remove(name)
            yield text
    for text in fetching.texts(work):
        name = config.text_hash(text)
        if name in wanted:
            wanted.remove(name)
            yield text


def _sound(home: Path) -> Snapshot | None:
    """The newest snapshot that is what was written. A damaged one lends nothing, and is no reason not to pull anew."""
    for folder in finished(home):
        with suppress(BadInput):
            if next(verify(folder), None) is None:
                return Snapshot.open(folder)
    return None


def _forget_finished(before: Snapshot | None, work: Path) -> None:
    """Remove what a pull left that was killed between its last two steps, so that it is not frozen a second time."""
    if before is None or not (work / REQUEST).exists():
        return
    if _begun(work)["begun"] == before.manifest.made_by.get("begun"):
        shutil.rmtree(work)


def _keep(request: Request, work: Path) -> str:
    """Begin a pull, or make sure that this is the one that was begun; return when it was."""
    path = work / REQUEST
    if not path.exists():
        work.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({**asdict(request), "begun": datetime.now(UTC).isoformat()}))
        partial.replace(path)
    begun = _begun(work)
    if begun != {**asdict(request), "begun": begun["begun"]}:
        hint = f"finish it with the same options, or delete {work}"
        raise BadInput(f"another pull was begun here: {begun}"[:300], where=str(work), hint=hint)
    return str(begun["begun"])


def _begun(work: Path) -> dict[str, Any]:
    path = work / REQUEST
    try:
        begun = json.loads(path.read_bytes())
        if not isinstance(begun, dict) or "begun" not in begun:
            raise ValueError("not a request")
    except (OSError, ValueError) as error:
        hint = f"delete {work} to start the pull anew"
        raise BadInput(f"the pull that was begun cannot be read: {error}", where=str(path), hint=hint) from error
    return begun


@contextmanager
def _lock(home: Path) -> Iterator[None]:
    with (home / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise EnvironmentFault("another process is pulling this catalog", where=str(home)) from error
        yield
