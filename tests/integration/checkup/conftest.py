"""One worker for everything that is checked here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from neuronqa.checkup.examine import Examiner


@pytest.fixture(scope="session")
def examiner() -> Iterator[Examiner]:
    with Examiner() as made:
        yield made
