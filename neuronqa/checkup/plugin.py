"""The pytest plugin: `neuronqa_check(module, inputs, ...)` fails the test with what a check found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from neuronqa.checkup.value import Checkup


class Check(Protocol):
    """As `neuronqa.check`, but a model that does not stand on every rung fails the test."""

    def __call__(
        self, module: Any, inputs: Any, loss: Any = None, optimizer: Any = None, **options: Any
    ) -> Checkup: ...


@pytest.fixture(scope="session")
def neuronqa_check() -> Iterator[Check]:
    """Check a module as `neuronqa.check` does, with one worker for the whole session."""
    from neuronqa.checkup.api import Checks

    with Checks() as checks:

        def check(module: Any, inputs: Any, loss: Any = None, optimizer: Any = None, **options: Any) -> Checkup:
            checkup = checks.check(module, inputs, loss, optimizer, **options)
            if not checkup.green:
                pytest.fail(str(checkup), pytrace=False)
            return checkup

        yield check
