"""What the facts alone decide."""

from __future__ import annotations

from typing import Any

import pytest

from neuronqa.catalog.status import Absence, from_facts
from neuronqa.domain.catalog import Entry, ListingStatus

CONFIG = "0" * 32


def status(**facts: Any) -> ListingStatus | None:
    decided = from_facts(Entry(id="a/b", rank=1, downloads=1, **facts))
    return None if decided is None else decided[0]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"config": CONFIG}, None),
        ({"config": CONFIG, "library": "transformers"}, None),
        ({"config": CONFIG, "library": "sentence-transformers"}, None),
        ({"config": CONFIG, "custom_code": True}, None),
        ({"config": CONFIG, "library": "brand-new"}, None),
        ({"config": CONFIG, "quantization": "awq"}, ListingStatus.QUANTIZED),
        ({"config": CONFIG, "library": "peft"}, ListingStatus.ADAPTER),
        ({"config": CONFIG, "library": "mlx"}, ListingStatus.NON_TRANSFORMERS),
        ({"config": CONFIG, "library": "gguf"}, ListingStatus.GGUF_ONLY),
        ({"absence": Absence.NOT_ASKED, "library": "peft"}, ListingStatus.ADAPTER),
        ({"absence": Absence.NOT_ASKED, "library": "diffusers"}, ListingStatus.NON_TRANSFORMERS),
        ({"absence": Absence.NOT_ASKED, "library": "brand-new"}, ListingStatus.NON_TRANSFORMERS),
        ({"absence": Absence.NOT_ASKED, "library": "gguf"}, ListingStatus.GGUF_ONLY),
        ({"absence": Absence.NOT_ASKED}, ListingStatus.NO_CONFIG),
        ({"absence": Absence.GATED}, ListingStatus.GATED),
        ({"absence": Absence.GATED, "quantization": "awq"}, ListingStatus.QUANTIZED),
        ({"absence": Absence.REPO_NOT_FOUND}, ListingStatus.PRIVATE_OR_REMOVED),
        ({"absence": Absence.REPO_NOT_FOUND, "library": "peft"}, ListingStatus.PRIVATE_OR_REMOVED),
        ({"absence": Absence.DISABLED, "library": "diffusers"}, ListingStatus.DISABLED),
        ({"absence": Absence.ENTRY_NOT_FOUND}, ListingStatus.NO_CONFIG),
        ({"absence": Absence.TOO_LONG}, ListingStatus.CONFIG_MALFORMED),
        ({"absence": "fetch-error: HTTP 503"}, ListingStatus.FETCH_ERROR),
        ({"absence": Absence.NOT_FETCHED}, ListingStatus.FETCH_ERROR),
        ({"absence": "no such word"}, ListingStatus.NO_CONFIG),
        ({}, ListingStatus.NO_CONFIG),
        ({"workload": {"kind": "module", "spec": {}}}, ListingStatus.ELIGIBLE),
    ],
)
def test_facts_decide(facts: dict[str, Any], expected: ListingStatus | None) -> None:
    assert status(**facts) is expected


def test_the_reason_of_a_failed_fetch_is_kept() -> None:
    decided = from_facts(Entry(id="a/b", rank=1, downloads=1, absence="fetch-error: HTTP 503"))
    assert decided == (ListingStatus.FETCH_ERROR, "HTTP 503")


@pytest.mark.parametrize("absence", list(Absence))
def test_every_absence_has_a_status(absence: Absence) -> None:
    assert status(absence=absence.value) is not None
