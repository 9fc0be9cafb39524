"""Who may do what over the network: tokens with a scope, kept as hashes in a file of the queue's folder."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from neuronqa.errors import BadInput, NeuronQAError

FILE: Final = "tokens.json"
MINUTE_S: Final = 60.0


class Scope(StrEnum):
    """What a token is for."""

    AGENT = "agent"
    """Take items, hand in kernels, read."""
    REVIEWER = "reviewer"
    """Decide on items that wait for a person, and read."""
    ADMIN = "admin"
    """Both, and take items off the queue."""

    def allows(self, wanted: Scope) -> bool:
        return self in (wanted, Scope.ADMIN)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who calls, and with what scope."""

    name: str
    scope: Scope


class TooMany(NeuronQAError):
    """More calls than the rate that one caller has."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokens of one queue. What is kept is their SHA-256: they are long and random, so that is enough."""

    folder: Path

    def create(self, name: str, scope: Scope) -> str:
        """A new token, shown here alone. Raises BadInput for a name that is taken, empty or unprintable."""
        kept = self._read()
        if not name.strip() or not name.isprintable() or len(name) > 60 or name in {one["name"] for one in kept}:
            raise BadInput("the name of a token is short, printable, and not taken yet", where=name[:60])
        token = secrets.token_urlsafe(32)
        self._write([*kept, {"name": name, "scope": scope.value, "sha256": _digest(token), "made": time.time()}])
        return token

    def revoke(self, name: str) -> None:
        """Raises BadInput for a name there is not."""
        kept = self._read()
        left = [one for one in kept if one["name"] != name]
        if len(left) == len(kept):
            raise BadInput(f"there is no token {name!r:.60}")
        self._write(left)

    def names(self) -> list[Caller]:
        """Whose tokens there are."""
        return [Caller(name=one["name"], scope=Scope(one["scope"])) for one in self._read()]

    def caller(self, token: str) -> Caller | None:
        """Whose token this is; None for nobody's."""
        found = None
        for one in self._read():
            if hmac.compare_digest(one["sha256"], _digest(token)):
                found = Caller(name=one["name"], scope=Scope(one["scope"]))
        return found

    def _read(self) -> list[dict[str, Any]]:
        path = self.folder / FILE
        try:
            kept: list[dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else []
        except (OSError, ValueError) as error:
            raise BadInput("the tokens cannot be read", where=str(path)) from error
        return kept

    def _write(self, kept: list[dict[str, Any]]) -> None:
        fresh = self.folder / f"{FILE}.new"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(kept, indent=1), encoding="ascii")
        fresh.replace(self.folder / FILE)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many calls a minute for each caller."""

    calls: int
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, deque[float]] = field(default_factory=dict)

    def count(self, name: str) -> None:
        """Raises TooMany."""
        now = self.clock()
        seen = self._seen.setdefault(name, deque())
        while seen and seen[0] <= now - MINUTE_S:
            seen.popleft()
        if len(seen) >= self.calls:
            raise TooMany(f"more than {self.calls} such calls in a minute", hint="wait, then call again")
        seen.append(now)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
