"""One config.json by commit: its stored text, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from neuronqa.catalog import config
from neuronqa.catalog.hub.client import Answer, HubClient
from neuronqa.catalog.status import Absence

MAIN: Final = "main"


@dataclass(frozen=True, slots=True)
class Fetched:
    """`text` is None where there is no config, and then `absence` says why."""

    text: str | None
    absence: str = ""

    @property
    def final(self) -> bool:
        """Will a later pull of the same commit find the same?"""
        return not self.absence.startswith(Absence.FETCH_ERROR)


def fetch(client: HubClient, repo: str, revision: str) -> Fetched:
    """One GET. The address is quoted; ids the Hub does not give never come here (see listing.fetchable)."""
    path = f"{quote(repo, safe='/')}/resolve/{quote(revision or MAIN, safe='')}/config.json"
    answer = client.get(path, config.BODY_LIMIT)
    if answer.too_long:
        return Fetched(None, Absence.TOO_LONG)
    if answer.status == 200:
        return Fetched(config.stored_text(answer.body))
    return Fetched(None, absence_of(answer))


def absence_of(answer: Answer) -> str:
    """What an answer other than 200 means.

    Gated goes before repository-not-found, whose special case it is. A 401 without a code is no answer about the
    repository: anonymous requests get one with a code, so it is the token that was refused, or a mirror.
    """
    if answer.code == "GatedRepo":
        return Absence.GATED
    if answer.message == "Access to this resource is disabled.":
        return Absence.DISABLED
    if answer.code == "EntryNotFound":
        return Absence.ENTRY_NOT_FOUND
    if answer.code == "RepoNotFound":
        return Absence.REPO_NOT_FOUND
    if answer.status == 404 and not answer.code:
        return f"{Absence.ENTRY_NOT_FOUND}: HTTP 404 without a code"
    if answer.status == 0:
        return f"{Absence.FETCH_ERROR}: {answer.message[:200]}"
    told = answer.code or answer.message or "without a code"
    return f"{Absence.FETCH_ERROR}: HTTP {answer.status} {told}"[:300]
