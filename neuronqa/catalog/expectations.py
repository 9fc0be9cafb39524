"""What a catalog that knows its answers expects, and how what was found differs from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import Entry
from neuronqa.domain.outcome import Check, Kind, Outcome, Standing

LISTING = "listing"
Found = tuple[Variant, Check, Outcome]


def expects_listing(entry: Entry, found: Outcome) -> bool:
    """Is this the outcome of the `eligible` rung that `entry` names? One that names none is to be eligible.

    An expectation without a detail fits any detail, because libraries word it.
    """
    wanted = Outcome.parse(entry.expected.get(LISTING, Kind.LISTING_ELIGIBLE.value))
    return wanted.kind is found.kind and wanted.detail in ("", found.detail)


def expected(entry: Entry, variant: Variant, check: Check) -> Outcome | None:
    """The outcome `entry` names for a check of a variant, None for none.

    A name is a check, alone or after parts of the variants it speaks of: `run`, `compile graph`, `eager bf16 fallback`.
    The one that names most parts counts.
    """
    parts = {*str(variant).split("/"), check.value}
    fitting = [name for name in entry.expected if name.split()[-1:] == [check.value] and parts.issuperset(name.split())]
    return Outcome.parse(entry.expected[max(fitting, key=len)]) if fitting else None


def surprises(entry: Entry, found: Iterable[Found]) -> Iterator[str]:
    """Say what differs. A check without an expectation must pass, or be blocked by one that was expected to fail."""
    for variant, check, outcome in found:
        wanted = expected(entry, variant, check)
        if wanted is None and _quiet(entry, outcome):
            continue
        if wanted != outcome:
            yield f"{entry.id} {variant} {check}: {outcome}, expected {wanted or 'a pass'}"


def _quiet(entry: Entry, outcome: Outcome) -> bool:
    blocked = outcome.kind is Kind.NOT_RUN_BLOCKED and bool(entry.expected)
    return blocked or outcome.standing is Standing.PASS
