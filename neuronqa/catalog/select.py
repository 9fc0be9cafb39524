"""Selectors over facts and results: which entries of a catalog a derived catalog holds.

    all  top-N  random-N@SEED  id:PATTERN  type:PATTERN  task:PATTERN  status:STATUS  list:FILE
    failed:SWEEP  cluster:KEY

`,` means and, `|` means or, and `,` binds closer. Within one `,` group the filters come first, then `top-N` takes the N
best ranked of what is left, then `random-N@SEED` draws N of those. PATTERN may hold `*`. `list:FILE` holds one id a
line. `failed:` keeps what a sweep showed to fail and `cluster:` what a root cause stands in, so that what one run said
is the next run's input. The draw depends on seed and id alone, so an entry that is drawn from a catalog is drawn from
any selection that keeps it among no more competitors.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from neuronqa.domain.catalog import Entry, ListingStatus
from neuronqa.domain.identity import content_hash
from neuronqa.errors import BadInput, UsageError

StatusOf = Callable[[Entry], ListingStatus | None]
"""Tells an entry's listing status, None where it is not known here."""
Results = Callable[[str, str], frozenset[str]]
"""Tells the ids that `failed` or `cluster` and a key stand for, from a database. Raises BadInput for an unknown key."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps entries whose `field` is `pattern`, in which `*` stands for any text."""

    field: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.field}:{self.pattern}"

    def keeps(self, value: str) -> bool:
        return _pattern(self.pattern).fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Listed:
    """Keeps entries whose id a file names; the ids, not the file's name, are its identity."""

    ids: frozenset[str]

    def __str__(self) -> str:
        return f"list:{content_hash(self.ids)[:12]}"


@dataclass(frozen=True, slots=True)
class Judged:
    """Keeps entries of which a sweep said so."""

    field: str
    key: str
    ids: frozenset[str]

    def __str__(self) -> str:
        return f"{self.field}:{self.key}"


@dataclass(frozen=True, slots=True)
class Top:
    """Keeps the `count` best ranked."""

    count: int

    def __str__(self) -> str:
        return f"top-{self.count}"


@dataclass(frozen=True, slots=True)
class Random:
    """Keeps `count` drawn without replacement."""

    count: int
    seed: int

    def __str__(self) -> str:
        return f"random-{self.count}@{self.seed}"


Term = Filter | Listed | Judged | Top | Random


@dataclass(frozen=True, slots=True)
class Selector:
    """A disjunction of conjunctions. An empty conjunction is `all`."""

    groups: tuple[tuple[Term, ...], ...]

    def __str__(self) -> str:
        return "|".join(",".join(str(term) for term in group) or "all" for group in self.groups)

    @property
    def asks_status(self) -> bool:
        return any(isinstance(term, Filter) and term.field == "status" for group in self.groups for term in group)


_COUNTED: Final = re.compile(r"(top)-(\d{1,9})|(random)-(\d{1,9})@(\d{1,18})", re.ASCII)
_FIELDS: Final = ("id", "type", "task", "status")
_RESULTS: Final = ("failed", "cluster")


def parse(text: str, results: Results | None = None) -> Selector:
    """Read an expression. Raises UsageError naming the part that is wrong, BadInput for an unreadable list.

    `results` is needed for `failed:` and `cluster:`; without it they are a UsageError.
    """
    return Selector(tuple(tuple(_terms(group, results)) for group in text.split("|")))


def chosen(selector: Selector, entries: Iterable[Entry], status_of: StatusOf | None = None) -> set[int]:
    """Return the ranks of the entries that the selector keeps, in one pass.

    `status_of` is needed for `status:`; without it, or where it returns None, UsageError is raised.
    """
    pickers = [_Picker(group, status_of) for group in selector.groups]
    for entry in entries:
        for picker in pickers:
            picker.offer(entry)
    return {rank for picker in pickers for rank in picker.ranks()}


def split_name(text: str) -> tuple[str, str | None]:
    """`top-100k[type:llama]` -> (`top-100k`, `type:llama`); a name without brackets has None."""
    if text.endswith("]") and "[" in text:
        name, _, expression = text[:-1].partition("[")
        return name, expression
    return text, None


def _terms(group: str, results: Results | None) -> Iterator[Term]:
    for part in group.split(","):
        term = part.strip()
        if term == "all":
            continue
        yield _term(term, results)


def _term(text: str, results: Results | None) -> Term:
    counted = _COUNTED.fullmatch(text)
    if counted and counted[1]:
        return Top(int(counted[2]))
    if counted:
        return Random(int(counted[4]), int(counted[5]))
    field, colon, pattern = text.partition(":")
    if field == "list" and pattern:
        return Listed(_read_ids(Path(pattern)))
    if field in _RESULTS and pattern:
        return Judged(field, pattern, _judged(field, pattern, results))
    if field == "status" and pattern:
        _check_status(Filter(field, pattern))
    if not colon or not pattern or field not in _FIELDS:
        known = "all, top-N, random-N@SEED, id:, type:, task:, status:, list:FILE, failed:SWEEP, cluster:KEY"
        raise UsageError(f"not a selector: {text[:80]!r}", hint=f"one of {known}, joined by , (and) and | (or)")
    return Filter(field, pattern)


def _check_status(wanted: Filter) -> None:
    known = [status.value for status in ListingStatus]
    if not any(wanted.keeps(status) for status in known):
        raise UsageError(f"no listing status is called {wanted.pattern[:40]!r}", hint=", ".join(known))


def _judged(field: str, key: str, results: Results | None) -> frozenset[str]:
    if results is None:
        raise UsageError(f"{field}: needs the results of a sweep", hint="give the catalog to a command that has --db")
    return results(field, key)


@functools.lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)


def _read_ids(path: Path) -> frozenset[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the list: {error}", where=str(path)) from error
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


class _Picker:
    """One conjunction at work: filters, then the best ranked, then the drawn."""

    def __init__(self, group: tuple[Term, ...], status_of: StatusOf | None) -> None:
        self._filters = [term for term in group if isinstance(term, Filter | Listed | Judged)]
        self._top = min((term.count for term in group if isinstance(term, Top)), default=None)
        draws = [term for term in group if isinstance(term, Random)]
        if len(draws) > 1:
            raise UsageError("more than one random- in one group", hint="join them with |")
        self._draw = draws[0] if draws else None
        self._status_of = status_of
        self._left = self._top
        self._kept: list[int] = []
        self._drawn: list[tuple[int, int]] = []

    def offer(self, entry: Entry) -> None:
        """Take an entry or leave it; entries come in rank order."""
        if self._left == 0 or not all(self._passes(term, entry) for term in self._filters):
            return
        if self._left is not None:
            self._left -= 1
        if self._draw is None:
            self._kept.append(entry.rank)
            return
        heapq.heappush(self._drawn, (-_lot(self._draw.seed, entry.id), entry.rank))
        if len(self._drawn) > self._draw.count:
            heapq.heappop(self._drawn)

    def ranks(self) -> list[int]:
        return self._kept if self._draw is None else [rank for _, rank in self._drawn]

    def _passes(self, term: Filter | Listed | Judged, entry: Entry) -> bool:
        match term:
            case Listed() | Judged():
                return entry.id in term.ids
            case Filter("id"):
                return term.keeps(entry.id)
            case Filter("type"):
                return term.keeps(entry.model_type)
            case Filter("task"):
                return term.keeps(entry.task)
            case Filter():
                return term.keeps(self._status(entry))
            case _:
                assert_never(term)

    def _status(self, entry: Entry) -> str:
        status = self._status_of(entry) if self._status_of else None
        if status is None:
            raise UsageError("status: needs the statuses of a plan", hint="give the catalog to a command that plans it")
        return status.value


def _lot(seed: int, name: str) -> int:
    digest = hashlib.sha256(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:16], "big")
