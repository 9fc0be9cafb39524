"""The listing: page after page, each kept before the next is asked for.

The ranking moves while one reads, so an id may come twice or not at all. The first place counts; how many came twice is
kept with the snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from neuronqa.catalog.hub import listing
from neuronqa.catalog.hub.client import HubClient
from neuronqa.catalog.hub.journal import Journal, read
from neuronqa.catalog.hub.progress import RESUME, Progress, Report
from neuronqa.errors import EnvironmentFault

FILE: Final = "pages.jsonl"
PAGE_ROWS: Final = 1_000
"""What is asked for a page; the Hub may give less, so only its `Link` header is believed."""
PAGE_LIMIT: Final = 256 << 20
"""Bytes of one page."""


@dataclass(frozen=True, slots=True)
class Place:
    """What fetching needs to know of an entry."""

    revision: str
    wanted: bool
    """Is its config to be fetched?"""


@dataclass
class Listed:
    """Ids in the order of the listing, each once."""

    places: dict[str, Place] = field(default_factory=dict)
    duplicates: int = 0
    unreadable: int = 0
    next_url: str = ""
    complete: bool = False

    @property
    def wanted(self) -> int:
        return sum(place.wanted for place in self.places.values())


def pull(limit: int, work: Path, client: HubClient, report: Report) -> Listed:
    """Read what is kept and ask for the rest. Raises EnvironmentFault when the Hub does not give it."""
    listed = Listed()
    for page in read(work / FILE):
        _add(listed, page, limit)
    query = [
        ("sort", "downloads"),
        ("limit", str(min(PAGE_ROWS, limit))),
        *(("expand", name) for name in listing.EXPAND),
    ]
    url = listed.next_url or f"api/models?{urlencode(query)}"
    with Journal(work / FILE) as journal:
        while not listed.complete:
            page = _page(client, url)
            journal.append(page)
            journal.sync()
            _add(listed, page, limit)
            url = listed.next_url
            done = len(listed.places)
            report(Progress(stage="listing", done=done, total=limit, eta_s=None, waited_s=client.budget.waited_s))
    return listed


def facts(limit: int, work: Path) -> Iterator[listing.Facts]:
    """The facts of each entry, in order, each id once."""
    seen: set[str] = set()
    for page in read(work / FILE):
        for item in page["rows"]:
            if item["id"] not in seen and len(seen) < limit:
                seen.add(item["id"])
                yield item


def _add(listed: Listed, page: dict[str, Any], limit: int) -> None:
    for item in page["rows"]:
        if item["id"] in listed.places:
            listed.duplicates += 1
        elif len(listed.places) < limit:
            listed.places[item["id"]] = Place(item.get("revision", ""), not item.get("absence"))
    listed.unreadable += page["unreadable"]
    listed.next_url = page["next"]
    listed.complete = len(listed.places) >= limit or not listed.next_url


def _page(client: HubClient, url: str) -> dict[str, Any]:
    answer = client.get(url, PAGE_LIMIT)
    if answer.status != 200 or answer.too_long:
        told = f"HTTP {answer.status} {answer.code or answer.message}".strip() if answer.status else answer.message
        raise EnvironmentFault(f"the listing of models failed: {told[:200]}", where=client.endpoint, hint=RESUME)
    try:
        items = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise EnvironmentFault(f"a page of the listing is not JSON: {error}", where=url[:200], hint=RESUME) from error
    if not isinstance(items, list):
        raise EnvironmentFault("a page of the listing is not a list", where=url[:200], hint=RESUME)
    found = [item for item in (listing.facts(item, client.authenticated) for item in items) if item is not None]
    return {"next": answer.next_url, "rows": found, "unreadable": len(items) - len(found)}
